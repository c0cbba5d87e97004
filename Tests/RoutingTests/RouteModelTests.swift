// RouteModelTests.swift -- the table against a model that asks every rule and every special name in turn.

import DNSWire
import Lists
import PublicSuffixes
import TestSupport
import Testing

@testable import Routing

/// The precedence documented by `RouteTable`, without compilation.
private struct Model {
  let rules: [RouteRule]
  let hosts: HostsFile
  let settings: SpecialNamesSettings
  var lists: [ModelList] = []

  var client: IPAddress?

  func ask(_ name: DomainName, _ type: RecordType) -> Outcome {
    switch decide(name, type) {
    case .nxDomain where isInHosts(name), .blocked where isInHosts(name): .noData("QNAME")
    case let outcome: outcome
    }
  }

  /// Whether the hosts file, and no rule, answers one of its types.
  private func isInHosts(_ name: DomainName) -> Bool {
    [.a, .aaaa, .https, .ptr].contains { type in
      hostsAnswer(name, type) != nil && rule(name, type, from: name.labelCount).map(\.isStandard) ?? true
    }
  }

  private func decide(_ name: DomainName, _ type: RecordType) -> Outcome {
    let answer = hostsAnswer(name, type)
    let special = answer == nil ? special(name, type) : nil
    return switch rule(name, type, from: answer == nil ? special?.0 ?? 0 : name.labelCount) {
    case .decides(let outcome): outcome
    case .standard(let number): answer ?? special?.1 ?? .route(number)
    case nil: answer ?? special?.1 ?? .route(0)
    }
  }

  /// What a rule says.
  private enum Ruling {
    case decides(Outcome)
    case standard(UInt16)

    var isStandard: Bool { if case .standard = self { true } else { false } }
  }

  private func rule(_ name: DomainName, _ type: RecordType, from depth: Int) -> Ruling? {
    for rule in rules where rule.types.isEmpty || rule.types.contains(TypeCategory(type)) {
      guard rule.clients.isEmpty || rule.clients.contains(where: { prefix in client.map(prefix.contains) ?? false })
      else { continue }
      let isStandard = if case .standard = rule.action { true } else { false }
      let matching = rule.names.filter { $0.matches(name) && (isStandard || $0.name.labelCount >= depth) }
      let deepest = matching.max(by: { $0.name.labelCount < $1.name.labelCount })
      let isListed = listsCount(for: name) && rule.lists.contains { lists[$0].has(name, for: rule.action) }
      guard deepest != nil || isListed else { continue }
      let isExact = if case .exact = deepest { true } else { deepest == nil }
      let zone = isExact || deepest!.name.isRoot ? "QNAME" : deepest!.name.text
      switch rule.action {
      case .standard(let number): return .standard(number)
      case .route(let number): return .decides(.route(number))
      case .nxDomain: return .decides(.blocked)
      case .noData: return .decides(.noData(zone))
      case .refused: return .decides(.refused)
      case .pinned(let addresses): return .decides(records(addresses, type) ?? .noData(zone))
      }
    }
    return nil
  }

  private func listsCount(for name: DomainName) -> Bool {
    guard [.a, .ptr].allSatisfy({ hostsAnswer(name, $0) == nil }) else { return false }
    let best = specialZone(name, .a)
    return best == nil || best!.effect == .search
  }

  private func records(_ addresses: [IPAddress], _ type: RecordType) -> Outcome? {
    let fitting = addresses.filter { type == .a && !$0.isIPv6 || type == .aaaa && $0.isIPv6 }
    return fitting.isEmpty ? nil : .records(fitting.map(\.description))
  }

  private func hostsAnswer(_ name: DomainName, _ type: RecordType) -> Outcome? {
    if type == .ptr {
      return hosts.pointers.first { $0.address.reverseName == name }.map { .records([$0.name.text]) }
    }
    guard [.a, .aaaa, .https, .svcb].contains(type) else { return nil }
    return hosts.hosts.first { $0.name == name }.map { records($0.addresses, type) ?? .noData("QNAME") }
  }

  private func special(_ name: DomainName, _ type: RecordType) -> (Int, Outcome)? {
    specialZone(name, type).map { ($0.depth, outcome($0.effect, $0.zone, type)) }
  }

  private func specialZone(
    _ name: DomainName, _ type: RecordType
  ) -> (depth: Int, effect: SpecialEffect, zone: DomainName)? {
    var best: (depth: Int, effect: SpecialEffect, zone: DomainName)?
    var labels = 0
    for zone in SpecialZone.zones(settings) where name.isAtOrBelow(zone.name) {
      guard let effect = zone.name == name ? zone.at : zone.below else { continue }
      guard zone.name.labelCount >= labels else { continue }
      best = (zone.ruleDepth, effect, zone.zone)
      labels = zone.name.labelCount
    }
    if best == nil, settings.special, !name.isRoot {
      let last = name.text.split(separator: ".").last!
      let isAddress = last.allSatisfy(\.isNumber) || name.labelCount == 1 && last.filter { $0 == ":" }.count > 1
      if isAddress {
        best = (1, .literal, .root)
      } else if name.labelCount == 1, [.a, .aaaa, .svcb, .https].contains(type) {
        best = (1, .singleLabel, .root)
      }
    }
    return best
  }

  private func outcome(_ effect: SpecialEffect, _ zone: DomainName, _ type: RecordType) -> Outcome {
    switch effect {
    case .loopback:
      type == .a ? .records(["127.0.0.1"]) : type == .aaaa ? .records(["::1"]) : .noData(zone.text)
    case .loopbackPointer: type == .ptr ? .records(["localhost."]) : .noData(zone.text)
    case .noData: .noData(zone.text)
    case .nxDomain: .nxDomain(zone.text)
    case .network, .singleLabel: settings.networkRoute.map(Outcome.route) ?? .nxDomain("QNAME")
    case .literal: .nxDomain("QNAME")
    case .search: .route(settings.searchRoute!)
    case .ipv4Only:
      settings.networkRoute.map(Outcome.route)
        ?? (type == .a ? .records(["192.0.0.170", "192.0.0.171"]) : .noData(zone.text))
    case .portal: .route(settings.portalRoute!)
    case .router: .route(settings.routerRoute!)
    case .discovery, .ownName: preconditionFailure("settings with encrypted listeners have no model")
    }
  }
}

/// A list as lines.
private struct ModelList {
  let lines: [(form: ListForm, name: DomainName)]

  var text: String {
    lines.map { line in
      let name = String(line.name.text.dropLast())
      return switch line.form {
      case .subtree: name
      case .alone: "full:\(name)"
      case .exception: "@@||\(name)^"
      }
    }.joined(separator: "\n")
  }

  /// The deepest line decides, and at one depth an exception.
  func has(_ name: DomainName, for action: RouteAction) -> Bool {
    let blocks =
      switch action {
      case .route, .standard: false
      default: true
      }
    let deepest = lines.filter { line in
      if line.form == .alone ? line.name != name : !name.isAtOrBelow(line.name) { return false }
      let text = line.name.text.dropLast() + "\0"
      let isSuffix = text.utf8.map { CChar($0) }.withUnsafeBufferPointer {
        PublicSuffixes.contains(text: $0.baseAddress!)
      }
      return line.form == .exception || !blocks || !isSuffix
    }.max { ($0.name.labelCount, $0.form == .exception ? 1 : 0) < ($1.name.labelCount, $1.form == .exception ? 1 : 0) }
    return deepest.map { $0.form != .exception } ?? false
  }
}

/// Sets of rules and names so small that all interactions occur.
private struct World {
  var generator: SeededGenerator
  private static let labels = [
    "a", "b", "a", "b", "com", "lan", "test", "local", "localhost", "arpa", "in-addr", "10", "127", "0", "1",
  ]
  private static let bases = [
    "", "", "test", "localhost", "local", "com", "10.in-addr.arpa", "127.in-addr.arpa", "0.127.in-addr.arpa",
    "home.arpa",
    "captive.apple.com", "ipv4only.arpa", "2.0.192.in-addr.arpa", "resolver.arpa", "a.b", "b",
  ]

  mutating func name() -> DomainName {
    let own = (0..<Int.random(in: 0...3, using: &generator)).map { _ in World.labels.randomElement(using: &generator)! }
    let base = World.bases.randomElement(using: &generator)!
    let text = (own + (base.isEmpty ? [] : [base])).joined(separator: ".")
    return text.isEmpty ? .root : DomainName(text: text)!
  }

  mutating func rule() -> RouteRule {
    let names = (0..<Int.random(in: 1...3, using: &generator)).map { _ -> NamePattern in
      let name = self.name()
      return [.subtree(name), .below(name), .exact(name)].randomElement(using: &generator)!
    }
    let pinned = RouteAction.pinned([IPAddress(text: "192.0.2.9")!, IPAddress(text: "2001:db8::9")!])
    let number = UInt16.random(in: 0...9, using: &generator)
    let types = TypeCategory.allCases.filter { _ in Int.random(in: 0...3, using: &generator) == 0 }
    let actions: [RouteAction] = [
      .route(number), .route(number), .nxDomain, .noData, .refused, .standard(0), .standard(number), pinned,
    ]
    let clients = World.prefixes.filter { _ in Int.random(in: 0...5, using: &generator) == 0 }
    let action = actions.randomElement(using: &generator)!
    let lists = (0..<World.listCount).filter { _ in Int.random(in: 0...4, using: &generator) == 0 }
    return RouteRule(
      names: lists.isEmpty || Bool.random(using: &generator) ? names : [], lists: lists, types: Set(types),
      clients: clients.map { IPPrefix(text: $0)! }, action: action)
  }

  static let listCount = 3

  mutating func list() -> ModelList {
    let lines = (0..<Int.random(in: 1...6, using: &generator)).compactMap { _ -> (ListForm, DomainName)? in
      let (form, name) = (ListForm.allCases.randomElement(using: &generator)!, name())
      // An address, or a name of one, is no name in a list.
      let isName = !name.isRoot && !name.text.dropLast().split(separator: ".").last!.allSatisfy(\.isNumber)
      return isName ? (form, name) : nil
    }
    return ModelList(lines: lines)
  }

  /// Some inside others, and of both families.
  private static let prefixes = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.1.1", "::/0", "fd00::/8", "fd00::1"]

  mutating func client() -> IPAddress? {
    let addresses = ["10.1.1.1", "10.1.1.2", "10.2.0.1", "192.0.2.1", "fd00::1", "fd00::2", "2001:db8::1"]
    return Bool.random(using: &generator) ? nil : IPAddress(text: addresses.randomElement(using: &generator)!)
  }

  mutating func hosts() -> HostsFile {
    let addresses = ["0.0.0.0", "10.0.0.1", "127.0.0.1", "192.0.2.1", "::1", "2001:db8::1"]
    let lines = (0..<Int.random(in: 0...6, using: &generator)).map { _ in
      "\(addresses.randomElement(using: &generator)!) \(name()) \(name())"
    }
    return try! HostsFile(octets: Array(lines.joined(separator: "\n").utf8))
  }

  mutating func settings() -> SpecialNamesSettings {
    let route: UInt16? = Bool.random(using: &generator) ? 70 : nil
    return SpecialNamesSettings(
      special: Int.random(in: 0...3, using: &generator) > 0, portalNames: Bool.random(using: &generator),
      searchDomains: [name(), name()], searchRoute: Bool.random(using: &generator) ? 90 : nil, networkRoute: route,
      portalRoute: route.map { $0 + 10 }, routerRoute: route.map { $0 + 30 })
  }
}

@Suite struct `The route table's model` {
  @Test func `table and model agree for random rules and names`() {
    var world = World(generator: SeededGenerator(seed: testSeed))
    let types: [RecordType] = [.a, .aaaa, .ptr, .https, .svcb, .mx, .ds]
    for round in 0..<60 {
      let rules = (0..<Int.random(in: 0...8, using: &world.generator)).map { _ in world.rule() }
      let hosts = world.hosts()
      let settings = world.settings()
      let lists = (0..<World.listCount).map { _ in world.list() }
      let key = ListKey()
      let uses = RouteRule.uses(of: rules)
      let names = lists.enumerated().map { index, list in
        let blocks = uses.contains { $0.list == index && $0.blocks }
        return (try? ListNames(key, blocks: blocks, text: list.text)) ?? ListNames()
      }
      let table = RouteTable(
        rules: rules, hosts: hosts, settings: settings, lists: ListTable(names, uses: uses, key))
      let client = world.client()
      let model = Model(rules: rules, hosts: hosts, settings: settings, lists: lists, client: client)
      for _ in 0..<30 {
        let name = world.name()
        for type in types {
          let found = table.ask(name, type, from: client)
          guard
            agrees(
              found,
              RouteReason(
                name, type, from: client, rules: rules, settings: settings, hosts: hosts,
                isListed: { use in
                  lists[use.list].has(name, for: use.blocks ? .nxDomain : .route(0))
                }), rules)
          else {
            Issue.record("seed \(testSeed), round \(round): \(name) \(type) is \(found) for another reason: \(rules)")
            return
          }
          let expected = model.ask(name, type)
          guard found == expected else {
            Issue.record("seed \(testSeed), round \(round): \(name) \(type) is \(found), not \(expected): \(rules)")
            return
          }
        }
      }
    }
  }

  /// Whether a decision is consistent with a reason. NXDOMAIN of a name in the hosts file is NODATA.
  private func agrees(_ found: Outcome, _ reason: RouteReason, _ rules: [RouteRule]) -> Bool {
    switch reason {
    case .rule(let index, _), .list(let index, _):
      switch (rules[index].action, found) {
      case (.route(let wanted), .route(let number)): wanted == number
      case (.nxDomain, .blocked), (.nxDomain, .noData("QNAME")), (.refused, .refused): true
      case (.pinned, .records), (.pinned, .noData), (.noData, .noData), (.standard, _): true
      default: false
      }
    case .hosts:
      switch found {
      case .records, .noData: true
      default: false
      }
    case .standard: found == .route(0)
    case .portal: found == .route(80)
    case .router: found == .route(100)
    case .search: found == .route(90) || found == .route(70)
    case .singleLabel: found == .route(70) || found == .nxDomain("QNAME") || found == .noData("QNAME")
    case .literal: found == .nxDomain("QNAME") || found == .noData("QNAME")
    case .special: found != .blocked && found != .refused
    }
  }

  @Test func `ten thousand names are all found, and their neighbours are not`() {
    var generator = SeededGenerator(seed: testSeed)
    let names = Set((0..<10_000).map { _ in "h\(UInt32.random(in: 0...9_999_999, using: &generator)).example" })
    let table = RouteTable([], hosts: names.map { "192.0.2.1 \($0)" }.joined(separator: "\n"))
    #expect(names.allSatisfy { table.ask($0) == .records(["192.0.2.1"]) }, "seed \(testSeed)")
    #expect(names.allSatisfy { table.ask("x." + $0) == .route(0) }, "seed \(testSeed)")
    #expect(
      names.allSatisfy { table.ask($0.replacing("h", with: "i", maxReplacements: 1)) == .route(0) }, "seed \(testSeed)")
  }
}
