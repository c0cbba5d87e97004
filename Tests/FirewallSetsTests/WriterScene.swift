// WriterScene.swift -- a writer on a virtual clock, with a thread that works when the test says so.

import Configuration
import EventLoop
@testable import FirewallSets
import TestSupport

/// A lane whose work waits until the test lets it run.
final class HeldLane: ExchangeLane {
  let exchange: SetExchange
  let deliver: Deliver
  private(set) var queue: [(number: Int, work: SetWork)] = []
  private(set) var isClosed = false

  init(_ exchange: SetExchange, _ deliver: @escaping Deliver) {
    self.exchange = exchange
    self.deliver = deliver
  }

  func submit(_ number: Int, _ work: SetWork) { queue.append((number, work)) }

  func close() {
    queue = []
    isClosed = true
  }

  /// Runs what waits, in its order.
  func run(_ count: Int = .max) {
    for _ in 0..<min(count, queue.count) {
      let (number, work) = queue.removeFirst()
      deliver(number, exchange.run(work))
    }
  }
}

/// A writer with the sets that a test gives it.
final class WriterScene {
  let loop = SimulatedLoop()
  let kernel: FakeSetKernel
  private(set) var lanes: [HeldLane] = []
  private(set) var notes: [SetNote] = []
  private(set) var refills: [FirewallSetName] = []
  /// Calls of completions, in their order.
  private(set) var completed: [String] = []
  /// Why the system gives no thread.
  var laneFailure: SetFailure?
  /// What the owner does when it is to refill a set.
  var whenRefilled: (FirewallSetName) -> Void = { _ in }
  private(set) var writer: SetWriter!

  init(_ sets: FirewallSetName...) {
    let loop = loop
    kernel = FakeSetKernel(clock: { loop.now })
    writer = SetWriter(
      on: loop,
      makeLane: { [unowned self] deliver throws(SetFailure) in
        if let laneFailure { throw laneFailure }
        lanes.append(HeldLane(SetExchange(kernel, clock: { loop.now }), deliver))
        return lanes.last!
      },
      refill: { [unowned self] in
        refills.append($0)
        whenRefilled($0)
      },
      note: { [unowned self] in notes.append($0) })
    for set in sets { kernel.create(set, set == .six ? .ipv6 : .ipv4) }
    writer.apply(sets)
    run()
    refills = []
  }

  var lane: HeldLane { lanes.last! }

  /// Lets the thread work, and the loop handle what follows, until nothing is left to do at this time.
  func run() {
    loop.advance(by: .zero)
    while let lane = lanes.last, !lane.queue.isEmpty {
      lane.run()
      loop.advance(by: .zero)
    }
  }

  /// Lets time pass with a thread that works at once.
  func pass(_ seconds: Int) {
    for _ in 0..<seconds {
      loop.advance(by: .seconds(1))
      run()
    }
  }

  func add(
    _ addresses: [SetAddress], to sets: FirewallSetName..., includingPrivate: Bool = false, as name: String = ""
  ) {
    writer.add(addresses, to: sets, includingPrivate: includingPrivate) { [unowned self] in completed.append(name) }
  }

  func status(_ set: FirewallSetName) -> SetStatus { writer.statuses.first { $0.name == set }! }
}
