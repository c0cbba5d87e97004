// SetExchange.swift -- adds addresses to sets, and notices when a set has lost what was added.
//
// On the thread of the exchanges only. The kernel itself is the memory of what a set contains: each address is looked up
// first, so that no timeout becomes shorter, also not one of another process, and a set that has the address already costs
// no commit. A set is described again and a witness, one address that must be in it, is looked up whenever another process
// has changed the rule set; that is before the next addition, which could otherwise hide that the set is empty or new.
// All of this is read within one generation of the rule set, and the kernel refuses the batch if there is another one.

import Configuration
import DNSWire
import EventLoop

/// Additions to be made together.
struct SetBatch: Sendable {
  let addresses: [SetAddress]
  /// An address is added to those whose key type it has.
  let sets: [FirewallSetName]
}

/// What happened to one set.
struct SetReport: Equatable, Sendable {
  let set: FirewallSetName
  var description: SetDescription?
  /// Addresses that the set contains now for their lifetime.
  var added = 0
  var failed = 0
  var failure: SetFailure?
  /// Whether the set no longer contained what had been added to it.
  var isLost = false

  init(_ set: FirewallSetName) { self.set = set }
}

final class SetExchange {
  private let kernel: any SetKernel
  private let clock: () -> BootInstant
  /// The generation in which `known` was read.
  private var generation: UInt32?
  private var known: [FirewallSetName: Result<SetDescription, SetFailure>] = [:]
  private var witnesses: [FirewallSetName: Witness] = [:]
  /// The last description of each set, also of those that are missing now.
  private var last: [FirewallSetName: SetDescription] = [:]

  private struct Witness {
    let address: IPAddress
    let end: BootInstant
  }

  /// Maximum addresses of a batch; further ones follow in another one.
  static let mostAddresses = 128
  /// Attempts to commit a batch while others change the rule set.
  static let attempts = 16
  /// How long before its end a witness is no longer expected to be there.
  private static let margin = Duration.seconds(1)

  init(_ kernel: any SetKernel, clock: @escaping () -> BootInstant) {
    self.kernel = kernel
    self.clock = clock
  }

  /// Adds addresses and prolongs those that are there; reports on each set of the batch.
  func add(_ batch: SetBatch) -> [SetReport] {
    var reports = batch.sets.map { SetReport($0) }
    var rest = batch.addresses[...]
    while !rest.isEmpty {
      add(Array(rest.prefix(SetExchange.mostAddresses)), &reports)
      rest = rest.dropFirst(SetExchange.mostAddresses)
    }
    return reports
  }

  /// Describes sets and looks up what must be in them.
  func look(_ sets: [FirewallSetName]) -> [SetReport] {
    sets.map { set in
      var report = SetReport(set)
      do throws(SetFailure) {
        try refresh()
        _ = try view(&report)
      } catch {
        report.failure = error
      }
      return report
    }
  }

  private func add(_ addresses: [SetAddress], _ reports: inout [SetReport]) {
    var open = Array(reports.indices)
    func fail(_ index: Int, _ failure: SetFailure) {
      let description = last[reports[index].set]
      reports[index].failed += addresses.count { description?.accepts($0.address) ?? true }
      reports[index].failure = failure
      open.removeAll { $0 == index }
    }
    var attempt = 0
    while !open.isEmpty {
      let start = clock()
      var changes: [(index: Int, change: SetChange)] = []
      do throws(SetFailure) {
        attempt += 1
        if attempt > SetExchange.attempts { throw SetFailure.contended }
        try refresh()
      } catch {
        for index in open { fail(index, error) }
        return
      }
      for index in open {
        do {
          changes.append((index, try change(addresses, &reports[index])))
        } catch {
          fail(index, error)
        }
      }
      switch commit(changes.map(\.change)) {
      case nil:
        for index in open { finish(addresses, &reports[index], since: start) }
        return
      case .generationEnded: forgetGeneration()
      case .refused(let place, let failure):
        forgetGeneration()
        fail(changes[place].index, failure)
      case .failed(let failure): for index in open { fail(index, failure) }
      }
    }
  }

  /// What an addition changes in a set; perhaps nothing.
  private func change(_ addresses: [SetAddress], _ report: inout SetReport) throws(SetFailure) -> SetChange {
    let description = try view(&report)
    var change = SetChange(set: report.set, description: description, elements: [])
    for addition in addresses where description.accepts(addition.address) {
      let life = try kernel.life(of: addition.address, in: report.set, description)
      if let life, !description.hasTimeouts || life.includes(addition.lifetime) { continue }
      change.elements.append(
        SetElement(
          address: addition.address, timeout: description.hasTimeouts ? addition.lifetime : nil, isPresent: life != nil)
      )
    }
    return change
  }

  private func commit(_ changes: [SetChange]) -> CommitFailure? {
    // Indices of a refusal are those of `changes`.
    let places = changes.indices.filter { !changes[$0].elements.isEmpty }
    guard let generation, !places.isEmpty else { return nil }
    do {
      try kernel.commit(places.map { changes[$0] }, in: generation)
      self.generation = generation == .max ? 1 : generation + 1
      return nil
    } catch .refused(let index, let failure) {
      return .refused(index: places[index], failure)
    } catch {
      return error
    }
  }

  private func finish(_ addresses: [SetAddress], _ report: inout SetReport, since start: BootInstant) {
    for addition in addresses where report.description?.accepts(addition.address) ?? false {
      report.added += 1
      let end = start + addition.lifetime
      if let witness = witnesses[report.set], witness.end >= end { continue }
      witnesses[report.set] = Witness(address: addition.address, end: end)
    }
  }

  private func refresh() throws(SetFailure) {
    let present = try kernel.generation()
    if present != generation { known = [:] }
    generation = present
  }

  private func forgetGeneration() {
    generation = nil
    known = [:]
  }

  /// The description of a set in this generation.
  private func view(_ report: inout SetReport) throws(SetFailure) -> SetDescription {
    let set = report.set
    if let known = known[set] {
      report.description = try known.get()
      return report.description!
    }
    let description: SetDescription
    do {
      description = try kernel.describe(set)
    } catch {
      if error.isOfGeneration { known[set] = .failure(error) }
      report.description = nil
      throw error
    }
    report.description = description
    last[set] = description
    if let witness = witnesses[set] {
      if witness.end < clock() + SetExchange.margin {
        witnesses[set] = nil
      } else if try !contains(witness, set, description) {
        witnesses[set] = nil
        report.isLost = true
      }
    }
    known[set] = .success(description)
    return description
  }

  private func contains(
    _ witness: Witness, _ set: FirewallSetName, _ description: SetDescription
  ) throws(SetFailure) -> Bool {
    // The set may have been created again for the other family.
    guard description.accepts(witness.address) else { return false }
    return try kernel.life(of: witness.address, in: set, description) != nil
  }
}

extension SetFailure {
  /// Whether it stays as long as no process changes the rule set.
  fileprivate var isOfGeneration: Bool {
    switch self {
    case .missingTable, .missing, .otherKey, .map, .constant: true
    case .notPermitted, .owned, .full, .unsupported, .noReply, .contended, .overloaded, .error: false
    }
  }
}
