// SetWriter.swift -- adds the addresses of answers to nftables sets before the answers are sent.
//
// The resolver owns it and uses it on its loop only. A thread does the exchanges with the kernel, while there are sets. An
// answer waits for them at most 50 ms. The writer never creates, flushes or deletes a set, and deletes no element but to
// add it again with a later end, in one batch.

import Configuration
import DNSWire
import EventLoop

/// Adds addresses to firewall sets. Loop thread only.
public final class SetWriter {
  /// After which a completion is called though the kernel has not replied.
  public static let patience = Duration.milliseconds(50)
  /// Maximum additions that wait for the thread.
  public static let mostAdditions = 4_096
  /// Between two looks at sets in use.
  public static let lookInterval = Duration.seconds(10)

  private let loop: any Loop
  private let makeLane: (@escaping Deliver) throws(SetFailure) -> any ExchangeLane
  private let refill: (FirewallSetName) -> Void
  private let note: (SetNote) -> Void
  private var lane: (any ExchangeLane)?
  private var isClosed = false
  private var names: [FirewallSetName] = []
  private var records: [FirewallSetName: SetRecord] = [:]
  private var work = WorkInFlight()
  /// They wait for a look at all sets that begins later.
  private var askers: [() -> Void] = []
  private let patienceTimer = OwnedTimer()
  private let lookTimer = OwnedTimer()

  /// - Parameters:
  ///   - refill: called on the loop, never during a call of this type, for a set that lacks addresses of cached answers:
  ///     when it is new to the writer, after failures, and when it was emptied. The owner adds all those addresses; an
  ///     addition for several answers together takes less time than one for each.
  ///   - note: called on the loop with each event to log.
  public convenience init(
    on loop: any Loop, refill: @escaping (FirewallSetName) -> Void, note: @escaping (SetNote) -> Void
  ) {
    self.init(on: loop, makeKernel: { NetlinkSetKernel() }, refill: refill, note: note)
  }

  convenience init(
    on loop: any Loop, makeKernel: @escaping @Sendable () -> any SetKernel,
    refill: @escaping (FirewallSetName) -> Void, note: @escaping (SetNote) -> Void
  ) {
    self.init(
      on: loop,
      makeLane: { deliver throws(SetFailure) in
        guard let loop = loop as? EventLoop else { return ExchangeOnLoop(on: loop, makeKernel(), deliver: deliver) }
        return try ExchangeThread(on: loop, makeKernel: makeKernel, deliver: deliver)
      }, refill: refill, note: note)
  }

  init(
    on loop: any Loop, makeLane: @escaping (@escaping Deliver) throws(SetFailure) -> any ExchangeLane,
    refill: @escaping (FirewallSetName) -> Void, note: @escaping (SetNote) -> Void
  ) {
    self.loop = loop
    self.makeLane = makeLane
    self.refill = refill
    self.note = note
  }

  deinit { lane?.close() }

  /// All sets in the order of the configuration.
  public var statuses: [SetStatus] { names.map { records[$0]!.status } }

  /// Sets the sets that rules name. Those that remain keep their state and counters. The thread exists as long as there are
  /// any.
  public func apply(_ sets: [FirewallSetName]) {
    loop.assertCurrent()
    let old = records
    records = [:]
    names = []
    for set in sets where records[set] == nil {
      names.append(set)
      records[set] = old[set] ?? SetRecord(set)
    }
    if names.isEmpty { return close() }
    isClosed = false
    look(at: names.filter { old[$0] == nil })
  }

  /// Adds an answer's addresses to sets, those that may be in sets at all, each to the sets of its type. Sets that are not
  /// applied are ignored.
  ///
  /// - Parameters:
  ///   - includingPrivate: whether addresses that the public Internet does not route to are added as well. Unspecified,
  ///     loopback, link-local and multicast addresses never are.
  ///   - completion: called once on the loop, whatever happens: when the sets have the addresses or cannot get them, at the
  ///     latest after `patience`; before this function returns if there is nothing to wait for.
  /// - Complexity: O(*n*) on the loop in the number of addresses.
  public func add(
    _ addresses: [SetAddress], to sets: [FirewallSetName], includingPrivate: Bool = false,
    completion: @escaping () -> Void = {}
  ) {
    loop.assertCurrent()
    let addresses = addresses.eligible(includingPrivate: includingPrivate)
    var sizes: [FirewallSetName: Int] = [:]
    for set in sets {
      if let fitting = records[set]?.fitting(addresses), fitting > 0 { sizes[set] = fitting }
    }
    guard let longest = addresses.map(\.lifetime).max(), !sizes.isEmpty, !isClosed else { return completion() }
    for set in sizes.keys { records[set]?.use(until: loop.now + longest) }
    startLooking()
    guard work.additions < SetWriter.mostAdditions else {
      drop(sizes, .overloaded)
      return completion()
    }
    let batch = SetBatch(addresses: addresses, sets: names.filter { sizes[$0] != nil })
    do {
      try opened().submit(
        work.begin(sizes, deadline: loop.now + SetWriter.patience, completion: completion), .add(batch))
      waitForFirst()
    } catch {
      drop(sizes, error)
      completion()
    }
  }

  /// Adds an answer's addresses to sets and returns when `add` with a completion would call it. The calling task must run
  /// on the loop.
  public nonisolated(nonsending) func add(
    _ addresses: [SetAddress], to sets: [FirewallSetName], includingPrivate: Bool = false
  ) async {
    await withCheckedContinuation { continuation in
      add(addresses, to: sets, includingPrivate: includingPrivate) { continuation.resume() }
    }
  }

  /// Looks at all sets, and returns when `statuses` says what the kernel has. The calling task must run on the loop.
  public nonisolated(nonsending) func look() async {
    loop.assertCurrent()
    await withCheckedContinuation { continuation in
      askers.append { continuation.resume() }
      // Not one that is in flight: it may be of other sets, and have read the kernel already.
      if !work.isLooking { lookForAskers() }
    }
  }

  /// Requests a refill of every set, as firewall scripts do after they have emptied one.
  public func refillAll() {
    loop.assertCurrent()
    for set in names { requestRefill(of: set) }
  }

  /// Ends the thread, at the latest after the exchange that it is in, and calls all completions; later ones are called at
  /// once. Does not wait. `apply` starts it again.
  public func close() {
    loop.assertCurrent()
    isClosed = true
    lane?.close()
    lane = nil
    patienceTimer.cancel()
    lookTimer.cancel()
    let completions = work.abandon() + askers
    askers = []
    for completion in completions { completion() }
  }

  // MARK: - Work in flight

  private func opened() throws(SetFailure) -> any ExchangeLane {
    if let lane { return lane }
    let opened = try makeLane { [weak self] number, reports in self?.finish(number, reports) }
    lane = opened
    return opened
  }

  private func finish(_ number: Int, _ reports: [SetReport]) {
    guard let ended = work.end(number) else { return }
    for report in reports {
      let notes = records[report.set]?.handle(report, isAddition: ended.isAddition, now: loop.now) ?? []
      notes.forEach(note)
      if let notes = records[report.set]?.takeRefill(now: loop.now) {
        notes.forEach(note)
        requestRefill(of: report.set)
      }
    }
    for completion in ended.completions { completion() }
    waitForFirst()
    guard !ended.isAddition else { return }
    // Those that were applied during the look.
    if askers.isEmpty { look(at: names.filter { records[$0]?.isUnknown ?? false }) } else { lookForAskers() }
  }

  private func drop(_ sizes: [FirewallSetName: Int], _ failure: SetFailure) {
    for (set, size) in sizes {
      let notes = records[set]?.drop(size, failure, now: loop.now) ?? []
      notes.forEach(note)
    }
  }

  private func requestRefill(of set: FirewallSetName) {
    loop.inNextTurn { [weak self] in
      guard let self, records[set] != nil else { return }
      refill(set)
    }
  }

  /// Sets the timer for the addition whose completion has waited longest.
  private func waitForFirst() {
    guard let deadline = work.firstDeadline else { return patienceTimer.cancel() }
    guard patienceTimer.deadline != deadline else { return }
    patienceTimer.set(at: deadline, on: loop, for: self) { $0.stopWaiting() }
  }

  private func stopWaiting() {
    while let late = work.takeLate(now: loop.now) {
      for (set, size) in late.sizes { records[set]?.countLate(size) }
      late.completion()
    }
    waitForFirst()
  }

  // MARK: - Looks

  private func startLooking() {
    guard !lookTimer.isSet else { return }
    lookTimer.set(after: SetWriter.lookInterval, on: loop, for: self) { $0.lookAgain() }
  }

  private func lookAgain() {
    let used = names.filter { set in records[set]?.usedUntil.map { $0 > loop.now } ?? false }
    guard !used.isEmpty else { return }
    look(at: used)
    startLooking()
  }

  private func lookForAskers() {
    let waiting = askers
    askers = []
    guard !names.isEmpty, !isClosed else { return waiting.forEach { $0() } }
    look(at: names, waiting)
  }

  /// One look at a time: the thread may be behind.
  ///
  /// - Parameter completions: called when the look has ended; only while none is in flight.
  private func look(at sets: [FirewallSetName], _ completions: [() -> Void] = []) {
    guard !sets.isEmpty, !work.isLooking else { return }
    let number = work.beginLook(completions)
    do {
      try opened().submit(number, .look(sets))
    } catch {
      let ended = work.end(number)
      drop(Dictionary(uniqueKeysWithValues: sets.map { ($0, 0) }), error)
      for completion in ended?.completions ?? [] { completion() }
    }
  }
}
