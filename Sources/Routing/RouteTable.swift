// RouteTable.swift -- rules, hosts file and special names as one table, consulted before the cache.
//
// Immutable, and shared by all listener threads. RouteCompiler.swift decides what wins.

import DNSWire
import FairShares
import Lists

/// A routing decision for a question.
public enum RouteDecision: Equatable, Sendable {
  /// Resolve it by the route of this number; 0 is the default route.
  case route(UInt16)
  /// Answer it with this element of `RouteTable.localAnswers`.
  case local(UInt32)
}

/// What was found for a question.
public struct RouteFinding: Sendable {
  public let decision: RouteDecision
  /// The counter of the rule that decided; `noCounter` if none did, or if it is not counted.
  public let counter: UInt16

  @inlinable public static var noCounter: UInt16 { @_noAllocation get { .max } }

  @_noAllocation @inline(__always)
  init(_ decision: RouteDecision, counter: UInt16 = RouteFinding.noCounter) {
    self.decision = decision
    self.counter = counter
  }
}

/// The decision for a name and a type.
struct TypeChoice: Hashable, BitwiseCopyable {
  /// A route's number, or the index of a local answer with the highest bit set.
  var decision: UInt32 = 0
  /// The counter of the rule that decides.
  var counter = RouteFinding.noCounter
  /// The uses of lists that may decide instead, a bit each: those of the rules before the one that decides.
  var lists: UInt64 = 0

  static let localBit: UInt32 = 1 << 31

  var finding: RouteFinding {
    @_noAllocation get { RouteFinding(TypeChoice.decision(decision), counter: counter) }
  }

  @_noAllocation @inline(__always)
  static func decision(_ value: UInt32) -> RouteDecision {
    value < TypeChoice.localBit
      ? .route(UInt16(truncatingIfNeeded: value)) : .local(value ^ TypeChoice.localBit)
  }
}

/// The decisions for a name by type.
struct RouteChoice: Hashable, BitwiseCopyable {
  var a: TypeChoice
  var aaaa: TypeChoice
  var pointer: TypeChoice
  /// SVCB and HTTPS, which carry address hints and therefore follow the addresses.
  var service: TypeChoice
  var other: TypeChoice
  /// Whether it is a name below a search domain of the network, for which "as without rules" means the route of those.
  var isSearched = false

  @_noAllocation @inline(__always)
  func choice(for type: UInt16) -> TypeChoice {
    switch type {
    case RecordType.a.rawValue: a
    case RecordType.aaaa.rawValue: aaaa
    case RecordType.ptr.rawValue: pointer
    case RecordType.svcb.rawValue, RecordType.https.rawValue: service
    default: other
    }
  }
}

/// The choices of a node, as indices: for the name itself, and for names below it without a node of their own.
struct RouteNode {
  var at: UInt32 = 0
  /// The highest bit is set when the node has children.
  var below: UInt32 = 0

  static let childBit: UInt32 = 1 << 31
}

/// The choices for names whose last label is not in the table, as indices.
struct UnknownTopLevel {
  /// Single-label names.
  var single: UInt32 = 0
  /// Names whose last label is a number, and IPv6 addresses in place of a name.
  var literal: UInt32 = 0
  /// All others.
  var ordinary: UInt32 = 0
}

/// All `[[rule]]`s, the hosts file and the special names, compiled.
///
/// What wins for a name and type:
/// 1. A rule for the name or one above it, for the type and the client; the first one that matches. A rule with fewer labels than a
///    hosts entry or special name does not override it: `names = ["."]` does not affect `localhost`, `names = ["test"]`
///    overrides RFC 6761 for all of `test`, and `names = ["=nas.lan"]` overrides the hosts file. A rule that says "as without
///    rules" ends the search whatever its labels. Lists of a rule do not count for such names, only its `names` do.
/// 2. The hosts file, for A, AAAA, SVCB and HTTPS of its names and PTR of its addresses. What wins for their other types
///    never says NXDOMAIN: the name exists.
/// 3. The deepest special name at or above the name.
/// 4. The default route.
public final class RouteTable: @unchecked Sendable {
  /// The clients that the rules tell apart.
  public let classes: ClientClasses
  /// The answers that `RouteDecision.local` refers to.
  public let localAnswers: [LocalAnswer]

  private let names: SuffixTable
  private let nodes: UnsafeMutablePointer<RouteNode>
  /// For each choice, one element for each class of clients.
  private let choices: UnsafeMutablePointer<RouteChoice>
  private let classCount: Int
  private let prefixes: ClientPrefixes
  /// The class of each prefix, and behind them that of clients in no prefix.
  private let groups: UnsafeMutablePointer<Int>
  private let unknown: UnknownTopLevel
  private let lists: ListRoutes
  /// The names of all lists of the rules; `lists` reads it.
  private let listTable: ListTable?

  /// Compiles a table.
  ///
  /// - Precondition: `lists` was made for `RouteRule.uses(of: rules)`.
  /// - Parameter hostsRoutes: by the number of a route, that of the route for types that the hosts file does not answer of
  ///   its names; a route without an entry stands for itself.
  /// - Complexity: O((rules + names in the hosts file) · classes of clients)
  public init(
    rules: [RouteRule], hosts: HostsFile, settings: SpecialNamesSettings, hostsRoutes: [UInt16: UInt16] = [:],
    lists table: ListTable? = nil
  ) {
    var compiler = RouteCompiler(rules: rules, hosts: hosts, settings: settings, hostsRoutes: hostsRoutes)
    compiler.compile()
    lists = ListRoutes(table, &compiler, rules, searchRoute: settings.searchRoute)
    listTable = table
    localAnswers = compiler.answers.values
    names = compiler.names.copyTable()
    nodes = RouteTable.copy(compiler.nodes)
    choices = RouteTable.copy(compiler.choices.values.flatMap(\.self))
    classes = compiler.classes
    classCount = classes.count
    prefixes = ClientPrefixes(classes.entries.map(\.prefix))
    groups = RouteTable.copy(classes.entries.map(\.number) + [ClientClasses.none])
    unknown = compiler.unknown
  }

  deinit {
    names.edges.deallocate()
    names.labels.deallocate()
    nodes.deallocate()
    choices.deallocate()
    prefixes.deallocate()
    groups.deallocate()
    lists.deallocate()
  }

  static func copy<Element: BitwiseCopyable>(_ elements: [Element]) -> UnsafeMutablePointer<Element> {
    let pointer = UnsafeMutablePointer<Element>.allocate(capacity: max(1, elements.count))
    pointer.initialize(from: elements, count: elements.count)
    return pointer
  }

  /// The class of a client for `find`. Any thread; does not allocate.
  ///
  /// - Parameter client: a `sockaddr_in` or `sockaddr_in6`; an IPv4-mapped IPv6 address counts as the IPv4 one.
  /// - Complexity: O(prefixes of all rules)
  @_noAllocation
  public func group(of client: UnsafeRawPointer) -> Int {
    groups[prefixes.firstIndex(containing: IPNumber(client).unmapped)]
  }

  /// Finds the decision for a question. Any thread; does not allocate.
  ///
  /// - Parameters:
  ///   - name: the QNAME in lower case, uncompressed.
  ///   - length: its octets including the root's zero; a name that does not end there takes the default route.
  ///   - type: the QTYPE.
  ///   - group: the class of the client.
  ///   - withLists: whether lists count.
  /// - Complexity: O(labels), with lists too
  @_noAllocation
  public func find(
    _ name: UnsafePointer<UInt8>, length: Int, type: UInt16, from group: Int = ClientClasses.none,
    withLists: Bool = true
  ) -> RouteFinding {
    // 255 octets (RFC 1035 section 2.3.4) have room for 127 labels.
    guard length <= 255 else { return RouteFinding(.route(0)) }
    var starts = InlineArray<128, UInt8>(repeating: 0)
    var position = 0
    var depth = 0
    while position < length, name[position] != 0 {
      starts[depth] = UInt8(truncatingIfNeeded: position)
      depth &+= 1
      position &+= Int(name[position]) &+ 1
    }
    guard position == length - 1 else { return RouteFinding(.route(0)) }

    let labels = depth
    var node: UInt32 = 0
    while depth > 0, nodes[Int(node)].below & RouteNode.childBit != 0 {
      let child = names.child(of: node, name + Int(starts[depth - 1]))
      if child == 0 { break }
      node = child
      depth -= 1
    }
    let choice =
      if depth == 0 {
        nodes[Int(node)].at
      } else if node != 0 {
        nodes[Int(node)].below & ~RouteNode.childBit
      } else {
        unknownTopLevel(name + Int(starts[depth - 1]), isSingle: labels == 1)
      }
    let found = choices + (Int(choice) &* classCount &+ group)
    let byNames = found.pointee.choice(for: type)
    guard withLists, byNames.lists != 0 else { return byNames.finding }
    return lists.find(byNames, isSearched: found.pointee.isSearched, for: type, name, starts, labels: labels)
  }

  /// The choice for a name whose last label is no node.
  @_noAllocation
  private func unknownTopLevel(_ label: UnsafePointer<UInt8>, isSingle: Bool) -> UInt32 {
    if isNumber(label) || isSingle && isIPv6Literal(label) { return unknown.literal }
    return isSingle ? unknown.single : unknown.ordinary
  }
}

/// Whether a label consists of digits only.
@_noAllocation
func isNumber(_ label: UnsafePointer<UInt8>) -> Bool {
  var index = 1
  while index <= Int(label[0]) {
    if label[index] &- 48 >= 10 { return false }
    index += 1
  }
  return true
}

/// Whether a label consists of hexadecimal digits and at least two colons.
@_noAllocation
private func isIPv6Literal(_ label: UnsafePointer<UInt8>) -> Bool {
  var colons = 0
  var index = 1
  while index <= Int(label[0]) {
    let octet = label[index]
    if octet == UInt8(ascii: ":") { colons += 1 } else if octet &- 48 >= 10, octet &- 97 >= 6 { return false }
    index += 1
  }
  return colons >= 2
}
