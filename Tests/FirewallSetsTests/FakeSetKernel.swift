// FakeSetKernel.swift -- sets of nftables in memory, on a virtual clock, as Linux before 6.12 has them.

import Configuration
import DNSWire
import EventLoop
@testable import FirewallSets

/// A rule set, and what the test makes of it.
final class FakeSetKernel: SetKernel {
  struct FakeSet {
    var description: Result<SetDescription, SetFailure>
    /// The end of each element; nil for one without timeout.
    var elements: [IPAddress: BootInstant?] = [:]
    var size = Int.max
  }

  private let clock: () -> BootInstant
  private(set) var number: UInt32 = 7
  private(set) var sets: [FirewallSetName: FakeSet] = [:]
  /// What every call ends with.
  var failure: SetFailure?
  /// Called before a commit is looked at: the place of other processes.
  var beforeCommit: () -> Void = {}
  private(set) var describes = 0
  private(set) var lookUps = 0
  /// The changes of all commits that were applied.
  private(set) var commits: [[SetChange]] = []

  init(clock: @escaping () -> BootInstant) { self.clock = clock }

  // MARK: - What others do

  func create(
    _ set: FirewallSetName, _ key: SetDescription.Key, timeouts: Bool = true, interval: Bool = false, size: Int = .max
  ) {
    let description = SetDescription(key, hasTimeouts: timeouts, isInterval: interval)
    change { $0[set] = FakeSet(description: .success(description), size: size) }
  }

  /// A set that accepts no addresses, for this reason.
  func createUnusable(_ set: FirewallSetName, _ failure: SetFailure) {
    change { $0[set] = FakeSet(description: .failure(failure)) }
  }

  func delete(_ set: FirewallSetName) { change { $0[set] = nil } }
  func flush(_ set: FirewallSetName) { change { $0[set]?.elements = [:] } }

  func put(_ address: String, in set: FirewallSetName, for lifetime: Duration?) {
    change { [now = clock()] in $0[set]!.elements[IPAddress(text: address)!] = .some(lifetime.map { now + $0 }) }
  }

  /// Any other change of the rule set.
  func change(_ body: (inout [FirewallSetName: FakeSet]) -> Void = { _ in }) {
    body(&sets)
    number += 1
  }

  /// The addresses of a set and the seconds that they remain, or `forever`.
  func contents(of set: FirewallSetName) -> [String: String] {
    let now = clock()
    var contents: [String: String] = [:]
    for (address, end) in sets[set]?.elements ?? [:] {
      guard let end else {
        contents["\(address)"] = "forever"
        continue
      }
      if end > now { contents["\(address)"] = "\((end - now).nanoseconds / 1_000_000_000)" }
    }
    return contents
  }

  // MARK: - What is asked

  func generation() throws(SetFailure) -> UInt32 {
    if let failure { throw failure }
    return number
  }

  func describe(_ set: FirewallSetName) throws(SetFailure) -> SetDescription {
    if let failure { throw failure }
    describes += 1
    guard let found = sets[set] else { throw .missing }
    return try found.description.get()
  }

  func life(
    of address: IPAddress, in set: FirewallSetName, _ description: SetDescription
  ) throws(SetFailure) -> ElementLife? {
    if let failure { throw failure }
    lookUps += 1
    guard let end = sets[set]?.elements[address] else { return nil }
    guard let end else { return .forever }
    let now = clock()
    return end > now ? .expires(after: end - now) : nil
  }

  func commit(_ changes: [SetChange], in generation: UInt32) throws(CommitFailure) {
    beforeCommit()
    if let failure { throw .failed(failure) }
    guard generation == number else { throw .generationEnded }
    var changed = sets
    for (index, change) in changes.enumerated() {
      guard var set = changed[change.set] else { throw .refused(index: index, .missing) }
      for element in change.elements {
        let isThere = set.elements[element.address].map { $0.map { $0 > clock() } ?? true } ?? false
        // An element that is there keeps its timeout if it is only added.
        if isThere, !element.isPresent { continue }
        set.elements[element.address] = .some(element.timeout.map { clock() + $0 })
      }
      guard set.elements.count <= set.size else { throw .refused(index: index, .full) }
      changed[change.set] = set
    }
    sets = changed
    commits.append(changes)
    number += 1
  }
}

extension FirewallSetName {
  static let four = try! FirewallSetName(text: "inet#fw#four")
  static let six = try! FirewallSetName(text: "inet#fw#six")
  static let other = try! FirewallSetName(text: "ip#fw#other")
}

/// Addresses with one lifetime in seconds.
func addresses(_ texts: String..., for seconds: Int = 100) -> [SetAddress] {
  texts.map { SetAddress(IPAddress(text: $0)!, lifetime: .seconds(seconds)) }
}
