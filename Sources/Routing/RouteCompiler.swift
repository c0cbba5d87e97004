// RouteCompiler.swift -- decides once, before any query, what wins for each name in rules, hosts file and special names.
//
// The deepest node at or above a QNAME determines which patterns, hosts entries and special names apply to it. Therefore
// each node gets two choices: for the name itself, and for the names below it.

import DNSWire

/// Values with their numbers; equal values share one.
struct Interned<Value: Hashable> {
  private(set) var values: [Value] = []
  private var numbers: [Value: UInt32] = [:]

  mutating func number(of value: Value) -> UInt32 {
    if let number = numbers[value] { return number }
    let number = append(value)
    numbers[value] = number
    return number
  }

  /// The number of a value, without a search for an equal one.
  mutating func append(_ value: Value) -> UInt32 {
    values.append(value)
    return UInt32(values.count - 1)
  }
}

/// A pattern that matches a name.
private struct Candidate {
  let rule: Int
  let depth: Int
  let pattern: NamePattern
}

/// A special name at or above a name.
private struct SpecialHit {
  let effect: SpecialEffect
  let zone: DomainName
  /// The number of labels that a rule needs to override it.
  let depth: Int

  /// Whether lists do not count for the name. A search domain of the network gives way to them as to any rule.
  var isKept: Bool { effect != .search }
}

/// Everything above a node that affects its decision, except the hosts file.
private struct Context {
  var candidates: [Candidate] = []
  var special: SpecialHit?
}

/// The decisions for the types that a hosts entry answers.
private struct HostAnswers {
  let a: UInt32
  let aaaa: UInt32
  let service: UInt32
}

/// The work of `RouteTable.init`.
struct RouteCompiler: ~Copyable {
  private(set) var names = SuffixTableBuilder()
  private(set) var nodes: [RouteNode] = []
  /// Each with one element for each class of clients.
  private(set) var choices = Interned<[RouteChoice]>()
  private(set) var answers = Interned<LocalAnswer>()
  private(set) var unknown = UnknownTopLevel()
  let classes: ClientClasses
  /// For each use of a list, the index of its rule.
  let uses: [Int]

  private let rules: [RouteRule]
  private let settings: SpecialNamesSettings
  private let hosts: HostsFile
  private let hostsRoutes: [UInt16: UInt16]
  private var patterns: [UInt32: [Candidate]] = [:]
  private var specialsAt: [UInt32: SpecialHit] = [:]
  private var specialsBelow: [UInt32: SpecialHit] = [:]
  private var hostPlaces: [UInt32: Int] = [:]
  private var pointerPlaces: [UInt32: Int] = [:]
  private var knownHostAnswers: [[IPAddress]: HostAnswers] = [:]

  init(rules: [RouteRule], hosts: HostsFile, settings: SpecialNamesSettings, hostsRoutes: [UInt16: UInt16]) {
    self.rules = rules
    classes = ClientClasses(rules)
    uses = rules.indices.flatMap { [Int](repeating: $0, count: rules[$0].lists.count) }
    self.hosts = hosts
    self.settings = settings
    self.hostsRoutes = hostsRoutes
    for (index, rule) in rules.enumerated() {
      for pattern in rule.names {
        let candidate = Candidate(rule: index, depth: pattern.name.labelCount, pattern: pattern)
        patterns[names.node(of: pattern.name.lowercased), default: []].append(candidate)
      }
    }
    for zone in SpecialZone.zones(settings) {
      let node = names.node(of: zone.name)
      let depth = zone.ruleDepth
      if let effect = zone.at { specialsAt[node] = SpecialHit(effect: effect, zone: zone.zone, depth: depth) }
      if let effect = zone.below { specialsBelow[node] = SpecialHit(effect: effect, zone: zone.zone, depth: depth) }
    }
    for (index, host) in hosts.hosts.enumerated() { hostPlaces[names.node(of: host.name)] = index }
    for (index, pointer) in hosts.pointers.enumerated() {
      pointerPlaces[names.node(of: pointer.address.reverseName)] = index
    }
  }

  /// Makes the choices of all nodes; parents come before their children.
  mutating func compile() {
    var depths = [0]
    var below = [Context(candidates: candidates(of: 0, isSelf: false), special: nil)]
    depths.reserveCapacity(names.count)
    below.reserveCapacity(names.count)
    nodes = [RouteNode](repeating: RouteNode(), count: names.count)
    nodes[0].at = choice(Context(candidates: candidates(of: 0, isSelf: true), special: nil))
    nodes[0].below = choice(below[0])
    compileUnknown(below[0])

    for index in 1..<names.count {
      let node = UInt32(index)
      let parent = Int(names.parents[index])
      let depth = depths[parent] + 1
      nodes[parent].below |= RouteNode.childBit
      let own = special(of: node, depth: depth)
      let hasPatterns = patterns[node] != nil
      depths.append(depth)
      below.append(below[parent])
      if hasPatterns || own.below != nil {
        below[index].candidates += candidates(of: node, isSelf: false)
        below[index].special = own.below ?? below[index].special
        nodes[index].below = choice(below[index])
      } else {
        nodes[index].below = nodes[parent].below & ~RouteNode.childBit
      }
      let host = hostPlaces[node]
      let pointer = pointerPlaces[node]
      if hasPatterns || own.at != nil || host != nil || pointer != nil {
        var context = below[parent]
        context.candidates += candidates(of: node, isSelf: true)
        context.special = own.at ?? context.special
        nodes[index].at = choice(context, host: host, pointer: pointer, depth: depth)
      } else {
        nodes[index].at = nodes[parent].below & ~RouteNode.childBit
      }
    }
  }

  /// The decisions of a use of a list. The zone of the answer is the name itself: which line has matched is not known.
  mutating func choice(ofUse number: Int) -> RouteChoice {
    func decision(_ category: TypeCategory) -> TypeChoice {
      let rule = uses[number]
      return TypeChoice(
        decision: ruleDecision(rule, category, owner: .queryName), counter: rules[rule].counter)
    }
    return RouteChoice(
      a: decision(.a), aaaa: decision(.aaaa), pointer: decision(.pointer), service: decision(.service),
      other: decision(.other))
  }

  /// The uses of lists whose rules fulfil a condition, a bit each.
  func uses(where isIn: (_ rule: Int) -> Bool) -> UInt64 {
    uses.indices.reduce(0) { isIn(uses[$1]) ? $0 | 1 << UInt64($1) : $0 }
  }

  /// Makes the choices for names whose last label occurs in no rule, hosts file or special name.
  private mutating func compileUnknown(_ root: Context) {
    func context(_ effect: SpecialEffect) -> Context {
      let hit = settings.special ? SpecialHit(effect: effect, zone: .root, depth: 1) : nil
      return Context(candidates: root.candidates, special: hit)
    }
    unknown.ordinary = choice(root)
    unknown.single = choice(context(.singleLabel))
    unknown.literal = choice(context(.literal))
  }

  /// The patterns at a node that match the name itself, or the names below it.
  private func candidates(of node: UInt32, isSelf: Bool) -> [Candidate] {
    (patterns[node] ?? []).filter {
      switch $0.pattern {
      case .subtree: true
      case .below: !isSelf
      case .exact: isSelf
      }
    }
  }

  /// The special name at a node; every single-label name is one.
  private func special(of node: UInt32, depth: Int) -> (at: SpecialHit?, below: SpecialHit?) {
    var at = specialsAt[node]
    var below = specialsBelow[node]
    if settings.special, depth == 1 {
      let isLiteral = names.isNumber(node)
      let literal = SpecialHit(effect: .literal, zone: .root, depth: 1)
      at = at ?? (isLiteral ? literal : SpecialHit(effect: .singleLabel, zone: .root, depth: 1))
      below = below ?? (isLiteral ? literal : nil)
    }
    return (at, below)
  }

  private mutating func choice(_ context: Context, host: Int? = nil, pointer: Int? = nil, depth: Int = 0) -> UInt32 {
    let host = host.map { hostAnswers(hosts.hosts[$0].addresses) }
    let pointer = pointer.map { pointerAnswer($0) }
    // For names of the hosts file and special names, only `names` may decide.
    let isKept = host != nil || pointer != nil || context.special?.isKept ?? false
    let lists = isKept ? 0 : uses { _ in true }
    let hasClients =
      (lists & uses { !rules[$0].clients.isEmpty }) != 0
      || context.candidates.contains { !rules[$0.rule].clients.isEmpty }
    guard hasClients else {
      let same = choice(context, lists, host, pointer, depth)
      return choices.number(of: [RouteChoice](repeating: same, count: classes.count))
    }
    let all = (0..<classes.count).map { number in
      var visible = context
      visible.candidates.removeAll { !classes.counts($0.rule, rules[$0.rule], for: number) }
      return choice(visible, lists & uses { classes.counts($0, rules[$0], for: number) }, host, pointer, depth)
    }
    return choices.number(of: all)
  }

  /// The choice for one class of clients.
  private mutating func choice(
    _ context: Context, _ lists: UInt64, _ host: HostAnswers?, _ pointer: UInt32?, _ depth: Int
  ) -> RouteChoice {
    var isByHosts = false
    var choice = RouteChoice(
      a: decide(.a, context, host?.a, depth, lists, &isByHosts),
      aaaa: decide(.aaaa, context, host?.aaaa, depth, lists, &isByHosts),
      pointer: decide(.pointer, context, pointer, depth, lists, &isByHosts),
      service: decide(.service, context, host?.service, depth, lists, &isByHosts),
      other: decide(.other, context, nil, depth, lists, &isByHosts),
      isSearched: context.special?.effect == .search && !uses.isEmpty)
    if isByHosts {
      choice.a.decision = ofExistingName(choice.a.decision)
      choice.aaaa.decision = ofExistingName(choice.aaaa.decision)
      choice.pointer.decision = ofExistingName(choice.pointer.decision)
      choice.service.decision = ofExistingName(choice.service.decision)
      choice.other.decision = ofExistingName(choice.other.decision)
    }
    return choice
  }

  /// A decision for a name that exists, since the hosts file answers some of its types: no other type is NXDOMAIN.
  private mutating func ofExistingName(_ decision: UInt32) -> UInt32 {
    guard decision >= TypeChoice.localBit else { return hostsRoutes[UInt16(decision)].map(UInt32.init) ?? decision }
    let answer = answers.values[Int(decision ^ TypeChoice.localBit)]
    return answer.responseCode == .nxDomain ? local(answer.ofExistingName) : decision
  }

  /// Decides in the order of `RouteTable`: a rule that is deep enough, the hosts file, the special name, the default route.
  ///
  /// - Parameters:
  ///   - lists: the uses of lists that may decide for the name.
  ///   - isByHosts: set if the hosts file has decided.
  private mutating func decide(
    _ category: TypeCategory, _ context: Context, _ hostAnswer: UInt32?, _ depth: Int, _ lists: UInt64,
    _ isByHosts: inout Bool
  ) -> TypeChoice {
    let effect = hostAnswer == nil ? context.special.flatMap { specialDecision($0, category) } : nil
    let minimumDepth = hostAnswer != nil ? depth : effect != nil ? context.special!.depth : 0
    var winner: Candidate?
    for candidate in context.candidates {
      let rule = rules[candidate.rule]
      guard rule.isFor(category), rule.mayOverride(minimumDepth, from: candidate.depth) else { continue }
      if let best = winner, (best.rule, -best.depth) <= (candidate.rule, -candidate.depth) { continue }
      winner = candidate
    }
    let end = winner?.rule ?? rules.count
    var choice = TypeChoice(lists: lists == 0 ? 0 : lists & uses { $0 < end && rules[$0].isFor(category) })
    if let winner {
      choice.counter = rules[winner.rule].counter
      choice.decision = ruleDecision(winner.rule, category, owner: winner.pattern.soaOwner)
      guard case .standard = rules[winner.rule].action else { return choice }
    }
    if hostAnswer != nil { isByHosts = true }
    choice.decision = hostAnswer ?? effect ?? choice.decision
    return choice
  }

  private mutating func local(_ answer: LocalAnswer) -> UInt32 { answers.number(of: answer) | TypeChoice.localBit }

  /// The decisions for a name in the hosts file, which the names of a blocklist share.
  private mutating func hostAnswers(_ addresses: [IPAddress]) -> HostAnswers {
    if let known = knownHostAnswers[addresses] { return known }
    let noData = local(.noData(of: .queryName))
    func number(_ category: TypeCategory) -> UInt32 {
      let answer = addressAnswer(category, addresses, owner: .queryName)
      return answer.records.isEmpty ? noData : answers.append(answer) | TypeChoice.localBit
    }
    let made = HostAnswers(a: number(.a), aaaa: number(.aaaa), service: noData)
    knownHostAnswers[addresses] = made
    return made
  }

  private mutating func pointerAnswer(_ place: Int) -> UInt32 {
    let answer = LocalAnswer.records(.ptr, [hosts.pointers[place].name.octets], orNoDataOf: .queryName)
    return answers.append(answer) | TypeChoice.localBit
  }

  private func addressAnswer(_ category: TypeCategory, _ addresses: [IPAddress], owner: SOAOwner) -> LocalAnswer {
    switch category {
    case .a: .records(.a, addresses.filter { !$0.isIPv6 }.map(\.octets), orNoDataOf: owner)
    case .aaaa: .records(.aaaa, addresses.filter(\.isIPv6).map(\.octets), orNoDataOf: owner)
    default: .noData(of: owner)
    }
  }

  private mutating func ruleDecision(_ rule: Int, _ category: TypeCategory, owner: SOAOwner) -> UInt32 {
    switch rules[rule].action {
    case .standard(let number), .route(let number): UInt32(number)
    case .noData: local(.blocked(.noError, owner: owner))
    case .nxDomain: local(.blocked(.nxDomain, owner: owner))
    case .refused: local(.blocked(.refused, owner: nil))
    case .pinned(let addresses): local(addressAnswer(category, addresses, owner: owner))
    }
  }

  /// The decision of a special name for a type; nil if the question is an ordinary one.
  private mutating func specialDecision(_ hit: SpecialHit, _ category: TypeCategory) -> UInt32? {
    let owner = SOAOwner.zone(hit.zone)
    switch hit.effect {
    case .loopback: return local(addressAnswer(category, [loopbackIPv4, loopbackIPv6], owner: owner))
    case .loopbackPointer:
      let names = category == .pointer ? [DomainName(text: "localhost")!.octets] : []
      return local(.records(.ptr, names, orNoDataOf: owner))
    case .noData: return local(.noData(of: owner))
    case .nxDomain: return local(.nxDomain(of: hit.zone))
    case .network: return settings.networkRoute.map(UInt32.init) ?? local(.unknown(isAuthoritative: true))
    case .singleLabel:
      guard category == .a || category == .aaaa || category == .service else { return nil }
      return settings.networkRoute.map(UInt32.init) ?? local(.unknown(isAuthoritative: false))
    case .literal: return local(.unknown(isAuthoritative: false))
    case .search: return settings.searchRoute.map(UInt32.init)
    case .ipv4Only:
      return settings.networkRoute.map(UInt32.init) ?? local(addressAnswer(category, ipv4OnlyAddresses, owner: owner))
    case .portal: return settings.portalRoute.map(UInt32.init)
    case .router: return settings.routerRoute.map(UInt32.init)
    case .discovery: return discoveryDecision(category, owner)
    case .ownName:
      guard category == .a || category == .aaaa || category == .service else { return nil }
      return local(addressAnswer(category, settings.designated?.addresses ?? [], owner: .queryName))
    }
  }

  private mutating func discoveryDecision(_ category: TypeCategory, _ owner: SOAOwner) -> UInt32 {
    let other = local(.noData(of: owner))
    guard category == .service, let resolver = settings.designated else { return other }
    return local(
      LocalAnswer(
        responseCode: .noError, records: resolver.records, soaOwner: nil, isAuthoritative: true, extendedError: nil,
        additionals: resolver.additionals, otherTypes: other ^ TypeChoice.localBit))
  }
}

extension NamePattern {
  /// The SOA owner for a blocked or pinned name. An SOA record of the root could end all names for a resolver that forwards
  /// to us.
  fileprivate var soaOwner: SOAOwner {
    switch self {
    case .subtree(let name), .below(let name): name.isRoot ? .queryName : .zone(name.lowercased)
    case .exact: .queryName
    }
  }
}

private let loopbackIPv4 = IPAddress(text: "127.0.0.1")!
private let loopbackIPv6 = IPAddress(text: "::1")!
/// The addresses of ipv4only.arpa (RFC 7050 section 2.2).
private let ipv4OnlyAddresses = [IPAddress(text: "192.0.0.170")!, IPAddress(text: "192.0.0.171")!]
