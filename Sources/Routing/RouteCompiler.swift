// RouteCompiler.swift -- decides, for every name that is mentioned anywhere, what wins; once, before any query.
//
// The deepest node at or above a QNAME determines which patterns, hosts entries and special names it meets, so that
// every node gets two choices: for the name itself, and for what is below it.

import DNSWire

/// Values with their numbers; equal values share one.
struct Interned<Value: Hashable> {
  private(set) var values: [Value] = []
  private var numbers: [Value: UInt32] = [:]

  mutating func number(of value: Value) -> UInt32 {
    if let number = numbers[value] { return number }
    let number = UInt32(values.count)
    values.append(value)
    numbers[value] = number
    return number
  }
}

/// The types that are told apart.
enum TypeCategory { case a, aaaa, pointer, service, other }

/// A pattern that a name has met.
private struct Candidate {
  let rule: Int
  let depth: Int
  let pattern: NamePattern
}

/// A special name that a name has met.
private struct SpecialHit {
  let effect: SpecialEffect
  let zone: DomainName
  let depth: Int
}

/// What stands above a position: everything that decides about it but the hosts file.
private struct Context {
  var candidates: [Candidate] = []
  var special: SpecialHit?
}

/// The work of `RouteTable.init`.
struct RouteCompiler: ~Copyable {
  private(set) var names = SuffixTableBuilder()
  private(set) var nodes: [RouteNode] = []
  private(set) var choices = Interned<RouteChoice>()
  private(set) var answers = Interned<LocalAnswer>()
  private(set) var unknown = UnknownTopLevel()

  private let rules: [RouteRule]
  private let settings: SpecialNamesSettings
  private let hosts: HostsFile
  private var patterns: [UInt32: [Candidate]] = [:]
  private var specialsAt: [UInt32: SpecialHit] = [:]
  private var specialsBelow: [UInt32: SpecialHit] = [:]
  private var hostPlaces: [UInt32: Int] = [:]
  private var pointerPlaces: [UInt32: Int] = [:]

  init(rules: [RouteRule], hosts: HostsFile, settings: SpecialNamesSettings) {
    self.rules = rules
    self.hosts = hosts
    self.settings = settings
    for (index, rule) in rules.enumerated() {
      for pattern in rule.names {
        let candidate = Candidate(rule: index, depth: pattern.name.labelCount, pattern: pattern)
        patterns[names.node(of: pattern.name.lowercased), default: []].append(candidate)
      }
    }
    for zone in SpecialZone.zones(settings) {
      let node = names.node(of: zone.name)
      let depth = zone.name.labelCount
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
      var selfContext = below[parent]
      var belowContext = below[parent]
      if patterns[node] != nil {
        selfContext.candidates += candidates(of: node, isSelf: true)
        belowContext.candidates += candidates(of: node, isSelf: false)
      }
      selfContext.special = own.at ?? selfContext.special
      belowContext.special = own.below ?? belowContext.special
      depths.append(depth)
      below.append(belowContext)
      nodes[index].at = choice(selfContext, host: hostPlaces[node], pointer: pointerPlaces[node], depth: depth)
      nodes[index].below = choice(belowContext)
    }
  }

  /// The choices for names whose last label is in no rule, hosts file or special name.
  private mutating func compileUnknown(_ root: Context) {
    func context(_ effect: SpecialEffect) -> Context {
      let hit = settings.special ? SpecialHit(effect: effect, zone: .root, depth: 1) : nil
      return Context(candidates: root.candidates, special: hit)
    }
    unknown.ordinary = choice(root)
    unknown.single = choice(context(.singleLabel))
    unknown.literal = choice(context(.nxDomain))
  }

  /// The patterns that stand at a node and are about the name itself, or about what is below it.
  private func candidates(of node: UInt32, isSelf: Bool) -> [Candidate] {
    (patterns[node] ?? []).filter {
      switch $0.pattern {
      case .subtree: true
      case .below: !isSelf
      case .exact: isSelf
      }
    }
  }

  /// The special name that stands at a node; every name of one label is one.
  private func special(of node: UInt32, depth: Int) -> (at: SpecialHit?, below: SpecialHit?) {
    var at = specialsAt[node]
    var below = specialsBelow[node]
    if settings.special, depth == 1 {
      let isLiteral = names.isNumber(node)
      let literal = SpecialHit(effect: .nxDomain, zone: .root, depth: 1)
      at = at ?? (isLiteral ? literal : SpecialHit(effect: .singleLabel, zone: .root, depth: 1))
      below = below ?? (isLiteral ? literal : nil)
    }
    return (at, below)
  }

  private mutating func choice(_ context: Context, host: Int? = nil, pointer: Int? = nil, depth: Int = 0) -> UInt32 {
    let choice = RouteChoice(
      a: decide(.a, context, hostAnswer(.a, host), depth),
      aaaa: decide(.aaaa, context, hostAnswer(.aaaa, host), depth),
      pointer: decide(.pointer, context, pointerAnswer(pointer), depth),
      service: decide(.service, context, hostAnswer(.service, host), depth),
      other: decide(.other, context, nil, depth))
    return choices.number(of: choice)
  }

  /// The order of `RouteTable`: a rule that is deep enough, the hosts file, the special name, the default route.
  private mutating func decide(
    _ category: TypeCategory, _ context: Context, _ hostAnswer: LocalAnswer?, _ depth: Int
  ) -> UInt32 {
    let effect = context.special.flatMap { specialDecision($0, category) }
    let minimumDepth = hostAnswer != nil ? depth : effect != nil ? context.special!.depth : 0
    let winner = context.candidates.filter { $0.depth >= minimumDepth }.min {
      ($0.rule, -$0.depth) < ($1.rule, -$1.depth)
    }
    if let winner { return ruleDecision(winner, category) }
    if let hostAnswer { return local(hostAnswer) }
    return effect ?? 0
  }

  private mutating func local(_ answer: LocalAnswer) -> UInt32 { answers.number(of: answer) | RouteChoice.localBit }

  private func hostAnswer(_ category: TypeCategory, _ place: Int?) -> LocalAnswer? {
    guard let place else { return nil }
    return addressAnswer(category, hosts.hosts[place].addresses, owner: .queryName)
  }

  private func pointerAnswer(_ place: Int?) -> LocalAnswer? {
    guard let place else { return nil }
    return .records(.ptr, [hosts.pointers[place].name.octets], orNoDataOf: .queryName)
  }

  /// Those of the addresses that the type is about.
  private func addressAnswer(_ category: TypeCategory, _ addresses: [IPAddress], owner: SOAOwner) -> LocalAnswer {
    switch category {
    case .a: .records(.a, addresses.filter { !$0.isIPv6 }.map(\.octets), orNoDataOf: owner)
    case .aaaa: .records(.aaaa, addresses.filter(\.isIPv6).map(\.octets), orNoDataOf: owner)
    default: .noData(of: owner)
    }
  }

  private mutating func ruleDecision(_ winner: Candidate, _ category: TypeCategory) -> UInt32 {
    let owner = winner.pattern.soaOwner
    return switch rules[winner.rule].action {
    case .route(let number): UInt32(number)
    case .nxDomain: local(.blocked(.nxDomain, owner: owner))
    case .refused: local(.blocked(.refused, owner: nil))
    case .pinned(let addresses): local(addressAnswer(category, addresses, owner: owner))
    }
  }

  /// What a special name makes of a type; nil where the question is an ordinary one.
  private mutating func specialDecision(_ hit: SpecialHit, _ category: TypeCategory) -> UInt32? {
    let owner = SOAOwner.zone(hit.zone)
    switch hit.effect {
    case .loopback:
      return local(addressAnswer(category, [loopbackIPv4, loopbackIPv6], owner: owner))
    case .loopbackPointer:
      let names = category == .pointer ? [DomainName(text: "localhost")!.octets] : []
      return local(.records(.ptr, names, orNoDataOf: owner))
    case .noData:
      return local(.noData(of: owner))
    case .nxDomain:
      return local(.nxDomain(of: hit.zone))
    case .network:
      return settings.networkRoute.map(UInt32.init) ?? local(.nxDomain(of: hit.zone))
    case .singleLabel:
      guard category == .a || category == .aaaa else { return nil }
      return settings.networkRoute.map(UInt32.init) ?? local(.nxDomain(of: hit.zone))
    case .ipv4Only:
      return settings.networkRoute.map(UInt32.init) ?? local(addressAnswer(category, ipv4OnlyAddresses, owner: owner))
    case .portal:
      return settings.portalRoute.map(UInt32.init)
    }
  }
}

extension NamePattern {
  /// The zone that a blocked or pinned name is taken to be in.
  fileprivate var soaOwner: SOAOwner {
    switch self {
    case .subtree(let name), .below(let name): .zone(name.lowercased)
    case .exact: .queryName
    }
  }
}

private let loopbackIPv4 = IPAddress(text: "127.0.0.1")!
private let loopbackIPv6 = IPAddress(text: "::1")!
/// RFC 7050 section 2.2.
private let ipv4OnlyAddresses = [IPAddress(text: "192.0.0.170")!, IPAddress(text: "192.0.0.171")!]
