// AttemptOrderTests.swift -- each server once, and one more attempt for what may be over in a moment.

import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct AttemptOrderTests {
  /// All that are left.
  private func rest(_ order: inout AttemptOrder) -> [Int] {
    var servers: [Int] = []
    while let server = order.next() { servers.append(server) }
    return servers
  }

  @Test func `servers come in their order, as many as may be asked`() {
    var order = AttemptOrder([2, 0, 1, 3], most: 3)
    #expect(rest(&order) == [2, 0, 1])
    var none = AttemptOrder([], most: 3)
    #expect(none.next() == nil)
  }

  @Test func `a second chance is the next server's`() {
    var order = AttemptOrder([0, 1], most: 3)
    #expect(order.next() == 0)
    #expect(order.secondChance(after: 0) == .nextServer)
    #expect(order.next() == 1)
    // There is one.
    #expect(order.secondChance(after: 1) == nil)
    #expect(order.next() == nil)
  }

  @Test func `a retry uses the same server if there is no other`() {
    var order = AttemptOrder([4], most: 3)
    #expect(order.next() == 4)
    #expect(order.secondChance(after: 4) == .sameServer)
    #expect(rest(&order) == [4])
    #expect(order.secondChance(after: 4) == nil)
  }

  @Test func `a single attempt has none`() {
    var order = AttemptOrder([4, 5], most: 1)
    #expect(order.next() == 4)
    #expect(order.secondChance(after: 4) == nil)
    #expect(order.next() == nil)
  }
}
