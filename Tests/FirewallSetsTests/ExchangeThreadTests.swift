// ExchangeThreadTests.swift -- the thread of its own: order, waiting, the end.

import Configuration
import DNSWire
import EventLoop
@testable import FirewallSets
import Glibc
import Synchronization
import TestSupport
import Testing

/// A truth that several threads see.
private final class Flag: Sendable {
  private let state = Atomic<Bool>(false)
  var value: Bool { state.load(ordering: .acquiring) }
  func set(_ value: Bool) { state.store(value, ordering: .releasing) }
}

/// A kernel whose commits wait until the test lets them go on. Each test has one, and keeps what it has seen.
private final class HeldKernel: SetKernel {
  /// What the test sees of the kernel.
  final class View: Sendable {
    let gate = Gate()
    let commits = Mutex<[[IPAddress]]>([])
    let isReleased = Flag()
    let isWaiting = Flag()
    let thread = Mutex<pthread_t>(0)
  }

  private let view: View
  private var number: UInt32 = 1

  init(_ view: View) {
    self.view = view
    view.thread.withLock { $0 = pthread_self() }
  }

  deinit { view.isReleased.set(true) }

  func generation() throws(SetFailure) -> UInt32 { number }
  func describe(_ set: FirewallSetName) throws(SetFailure) -> SetDescription { SetDescription(.ipv4) }

  func life(
    of address: IPAddress, in set: FirewallSetName, _ description: SetDescription
  ) throws(SetFailure) -> ElementLife? { nil }

  func commit(_ changes: [SetChange], in generation: UInt32) throws(CommitFailure) {
    view.isWaiting.set(true)
    view.gate.wait()
    view.isWaiting.set(false)
    view.commits.withLock { $0.append(changes[0].elements.map(\.address)) }
    number += 1
  }
}

/// A writer on a real loop whose kernel is held.
private func withWriter(_ body: @escaping (SetWriter, HeldKernel.View, EventLoop) async throws -> Void) throws {
  let view = HeldKernel.View()
  try onLoop { loop in
    let writer = SetWriter(on: loop, makeKernel: { HeldKernel(view) }, refill: { _ in }, note: { _ in })
    writer.apply([.four])
    try await body(writer, view, loop)
    writer.close()
  }
  view.gate.open(100)
  #expect(comes { view.isReleased.value })
}

@Suite struct `The real thread of firewall sets` {
  @Test func `exchanges run on a thread of their own, in their order, and complete on the loop`() throws {
    try withWriter { writer, view, loop in
      view.gate.open(3)
      var completed: [Int] = []
      for index in 0..<3 {
        writer.add(addresses("192.0.2.\(index + 1)"), to: [.four]) {
          #expect(loop.isCurrent)
          completed.append(index)
        }
      }
      #expect(completed == [])
      #expect(await loop.until { completed.count == 3 && writer.statuses[0].added == 3 })
      #expect(completed == [0, 1, 2])
      #expect(view.commits.withLock { $0.map { "\($0[0])" } } == ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
      #expect(view.thread.withLock { $0 } != pthread_self())
    }
  }

  @Test func `a kernel that holds its lock does not hold the answer`() throws {
    try withWriter { writer, view, loop in
      await writer.add(addresses("192.0.2.1"), to: [.four])
      #expect(writer.statuses[0].late == 1 && writer.statuses[0].added == 0)
      view.gate.open()
      #expect(await loop.until { writer.statuses[0].added == 1 })
      #expect(writer.statuses[0].state == "ok")
    }
  }

  @Test func `closing does not wait for the exchange, after which the thread ends`() throws {
    try withWriter { writer, view, loop in
      var completed = 0
      for _ in 0..<3 { writer.add(addresses("192.0.2.1"), to: [.four]) { completed += 1 } }
      #expect(await loop.until { view.isWaiting.value })
      writer.close()
      #expect(completed == 3)
      #expect(!view.isReleased.value)
      view.gate.open()
      #expect(await loop.until { view.isReleased.value })
      // The others were not begun.
      #expect(view.commits.withLock { $0.count } == 1)
    }
  }

  @Test func `after the last set is gone another one gets another thread`() throws {
    try withWriter { writer, view, loop in
      writer.apply([])
      #expect(await loop.until { view.isReleased.value })
      view.isReleased.set(false)
      writer.apply([.four])
      view.gate.open()
      await writer.add(addresses("192.0.2.1"), to: [.four])
      #expect(await loop.until { writer.statuses[0].added == 1 })
    }
  }
}
