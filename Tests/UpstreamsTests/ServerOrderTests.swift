// ServerOrderTests.swift -- which server comes first, which ones are left out, and when handshakes are due.

import EventLoop
import Testing

@testable import Upstreams

@Suite struct ServerOrderTests {
  private var now = BootInstant(nanoseconds: 1_000_000_000_000)
  private let silence = Duration.milliseconds(300)

  private func order(_ count: Int, attempts: Int = 3) -> ServerOrder {
    ServerOrder(count: count, attemptsBeforeSwitch: attempts, returnToFirst: .seconds(600))
  }

  private func loss(_ reason: String = "refused", hasNoRoute: Bool = false) -> ServerOrder.Loss {
    ServerOrder.Loss(since: now, reason: reason, hasNoRoute: hasNoRoute)
  }

  private func due(_ order: inout ServerOrder, heardAt: BootInstant? = nil, isUrgent: Bool = false)
    -> [ServerOrder.Handshake]
  {
    let heard = heardAt ?? BootInstant(nanoseconds: .min)
    return order.takeHandshakes(silence: silence, isUrgent: isUrgent, now: now) { _ in heard }
  }

  @Test mutating func `a verdict of another server counts once the first one has failed so often in a row`() {
    var order = order(3)
    for _ in 0..<2 {
      order.failed(0, sentAt: now, now: now)
      let hasMoved = order.gaveVerdict(1, now: now)
      #expect(!hasMoved)
    }
    order.failed(0, sentAt: now, now: now)
    #expect(order.servers == [0, 1, 2])
    var hasMoved = order.gaveVerdict(1, now: now)
    #expect(hasMoved)
    #expect(order.servers == [1, 2, 0])
    for _ in 0..<2 { order.failed(1, sentAt: now, now: now) }
    order.gaveVerdict(1, now: now)
    order.failed(1, sentAt: now, now: now)
    hasMoved = order.gaveVerdict(2, now: now)
    #expect(!hasMoved)
    #expect(order.servers == [1, 2, 0])
  }

  @Test mutating func `names that hang everywhere change nothing`() {
    var order = order(3)
    for number in 0..<100 {
      order.failed(number % 3, sentAt: now, now: now)
      #expect(order.first == 0)
    }
    order.gaveVerdict(0, now: now)
    #expect(order.servers == [0, 1, 2])
  }

  @Test mutating func `names that hang say nothing about a server that has given a verdict meanwhile`() {
    var order = order(2)
    let sentAt = now
    now = now + .seconds(1)
    order.gaveVerdict(0, now: now)
    for _ in 0..<10 { order.failed(0, sentAt: sentAt, now: now + .seconds(1)) }
    order.gaveVerdict(1, now: now)
    #expect(order.servers == [0, 1])
    for _ in 0..<3 { order.failed(0, sentAt: now, now: now + .seconds(2)) }
    order.gaveVerdict(1, now: now)
    #expect(order.servers == [1, 0])
  }

  @Test mutating func `of the others the one that has failed least is asked next, so that each gets its turn`() {
    var order = order(6)
    for _ in 0..<2 {
      for server in order.servers.prefix(3) { order.failed(server, sentAt: now, now: now) }
    }
    #expect(order.servers == [0, 5, 1, 2, 3, 4])
    order.gaveVerdict(3, now: now)
    #expect(order.servers == [0, 3, 5, 1, 2, 4])
  }

  @Test mutating func `the server that ends a silence comes first`() {
    var order = order(3)
    order.gaveVerdict(2, endsSilence: true, now: now)
    #expect(order.servers == [2, 0, 1])
    order.gaveVerdict(1, now: now)
    #expect(order.servers == [2, 0, 1])
    order.gaveVerdict(0, now: now)
    #expect(order.servers == [0, 1, 2])
  }

  @Test func `failures of a server that is not first change nothing`() {
    var order = order(2, attempts: 1)
    for _ in 0..<10 { order.failed(1, sentAt: now, now: now) }
    #expect(order.servers == [0, 1])
  }

  @Test func `a server that cannot be reached is left out at once, and comes back with any sign of life`() {
    var order = order(3)
    var isNews = order.lose(0, loss())
    #expect(isNews)
    isNews = order.lose(0, loss("again"))
    #expect(!isNews)
    #expect(order.servers == [1, 2])
    #expect(!order.isOutOfReach && order.loss == nil)
    _ = order.lose(1, loss())
    _ = order.lose(2, loss("the last"))
    #expect(order.servers.isEmpty && order.isOutOfReach && order.first == nil)
    #expect(order.losses.map(\.loss.reason) == ["refused", "refused", "the last"])
    order.ended(1, true, now: now)
    #expect(order.servers == [1])
    order.gaveVerdict(2, now: now)
    #expect(order.servers == [1, 2])
    order.ended(0, true, now: now)
    #expect(order.servers == [0, 1, 2])
  }

  @Test mutating func `a server of which nothing came after a request is asked for a handshake, once a second`() {
    var order = order(1)
    order.sent(to: 0, heardAt: BootInstant(nanoseconds: .min), now: now)
    let asked = now
    #expect(order.nextHandshake(silence: silence, now: now) == now + silence)
    var times: [Duration] = []
    for _ in 0..<40 {
      for handshake in due(&order) {
        #expect(handshake == ServerOrder.Handshake(server: 0, time: .seconds(1)))
        times.append(now - asked)
        // It is not heard, but it shakes hands.
        order.ended(handshake.server, true, now: now)
        order.sent(to: 0, heardAt: BootInstant(nanoseconds: .min), now: now)
      }
      now = now + .milliseconds(100)
    }
    #expect(times == [300, 1300, 2300, 3300].map { .milliseconds($0) })
  }

  @Test mutating func `what comes from a server after a request is no silence`() {
    var order = order(1)
    order.sent(to: 0, heardAt: BootInstant(nanoseconds: .min), now: now)
    now = now + .milliseconds(350)
    let handshakes = due(&order, heardAt: now)
    #expect(handshakes.isEmpty)
    #expect(order.nextHandshake(silence: silence, now: now) == nil)
    // The next request counts from when it was sent.
    let heard = now
    now = now + .seconds(5)
    order.sent(to: 0, heardAt: heard, now: now)
    #expect(order.nextHandshake(silence: silence, now: now) == now + silence)
  }

  @Test mutating func `a handshake that ends late says nothing about a request that was sent meanwhile`() {
    var order = order(1)
    order.sent(to: 0, heardAt: BootInstant(nanoseconds: .min), now: now)
    now = now + silence
    var handshakes = due(&order)
    #expect(handshakes.count == 1)
    // A reply comes, the next request gets none, and then the handshake has had its time.
    let heard = now + .milliseconds(100)
    now = now + .milliseconds(500)
    order.sent(to: 0, heardAt: heard, now: now)
    now = now + .milliseconds(500)
    order.ended(0, true, now: now)
    let next = order.nextHandshake(silence: silence, now: now)
    #expect(next == now)
    handshakes = due(&order, heardAt: heard)
    #expect(handshakes.count == 1)
  }

  @Test mutating func `servers that are left out shake hands once a second, three at a time in turn`() {
    var order = order(5)
    for number in 0..<5 { _ = order.lose(number, loss()) }
    order.isWanted(now: now)
    var rounds: [[Int]] = []
    for _ in 0..<5 {
      now = now + .seconds(1)
      let round = due(&order)
      rounds.append(round.map(\.server))
      for handshake in round {
        #expect(handshake.time == .seconds(3))
        order.ended(handshake.server, false, now: now)
      }
    }
    #expect(rounds == [[0, 1, 2], [3, 4, 0], [1, 2, 0], [3, 4, 0], [1, 2, 0]])
  }

  @Test mutating func `ten minutes after the last question handshakes are ten seconds apart`() {
    var order = order(1)
    _ = order.lose(0, loss())
    order.isWanted(now: now)
    let begin = now
    var times: [Int64] = []
    while now - begin < .seconds(660) {
      now = now + .seconds(1)
      for handshake in due(&order) {
        times.append((now - begin).components.seconds)
        order.ended(handshake.server, false, now: now)
      }
    }
    #expect(times.filter { $0 < 600 } == Array(1..<600))
    #expect(times.filter { $0 > 602 }.count <= 6)
    // A question makes it look at once.
    order.isWanted(now: now)
    now = now + .seconds(1)
    #expect(due(&order, isUrgent: true).count == 1)
  }

  @Test mutating func `a question finds out at once, unless the last handshakes are younger than a second`() {
    var order = order(1)
    _ = order.lose(0, loss())
    now = now + .milliseconds(500)
    #expect(due(&order, isUrgent: true).isEmpty)
    now = now + .milliseconds(500)
    #expect(due(&order, isUrgent: true).count == 1)
  }

  @Test mutating func `where there is no route only a question that finds no server tries again`() {
    var order = order(2)
    _ = order.lose(0, loss(hasNoRoute: true))
    #expect(order.nextHandshake(silence: silence, now: now) == nil)
    now = now + .seconds(100)
    #expect(due(&order).isEmpty)
    #expect(due(&order, isUrgent: true).map(\.server) == [0])
    order.networkHasChanged()
    #expect(order.servers.sorted() == [0, 1])
  }

  @Test mutating func `the first server shakes hands after its time, and then gets one question`() {
    var order = order(2, attempts: 1)
    order.failed(0, sentAt: now, now: now)
    order.gaveVerdict(1, now: now)
    #expect(order.servers == [1, 0])
    #expect(order.nextHandshake(silence: silence, now: now) == now + .seconds(600))
    now = now + .seconds(600)
    var handshakes = due(&order)
    #expect(handshakes == [ServerOrder.Handshake(server: 0)])
    var isReturning = order.takeReturn(of: 0)
    #expect(!isReturning)
    order.ended(0, true, now: now)
    isReturning = order.takeReturn(of: 0)
    #expect(isReturning)
    isReturning = order.takeReturn(of: 0)
    #expect(!isReturning)
    // No verdict: it is put off.
    order.failed(0, sentAt: now, now: now)
    #expect(order.servers == [1, 0])
    #expect(order.nextHandshake(silence: silence, now: now) == now + .seconds(600))
    now = now + .seconds(600)
    handshakes = due(&order)
    order.ended(0, true, now: now)
    order.gaveVerdict(0, now: now)
    #expect(order.servers == [0, 1])
    #expect(order.nextHandshake(silence: silence, now: now) == nil)
  }

  @Test mutating func `a first server that does not shake hands waits for another period`() {
    var order = order(2, attempts: 1)
    order.failed(0, sentAt: now, now: now)
    order.gaveVerdict(1, now: now)
    now = now + .seconds(600)
    _ = due(&order)
    order.ended(0, false, now: now)
    let isReturning = order.takeReturn(of: 0)
    #expect(!isReturning)
    #expect(order.nextHandshake(silence: silence, now: now) == now + .seconds(600))
  }

  @Test mutating func `after a verdict that moved the order each client asks the first server once more`() {
    var order = order(2, attempts: 1)
    order.failed(0, sentAt: now, now: now)
    order.gaveVerdict(1, now: now)
    var tries: [Bool] = []
    for client in [1, 1, 2, 1, 0, 3] as [UInt64] { tries.append(order.takeReturn(of: client)) }
    #expect(tries == [true, false, true, false, false, true])
    tries = []
    for client in 4..<100 as Range<UInt64> { tries.append(order.takeReturn(of: client)) }
    #expect(tries.count { $0 } == 61)
    // Its verdict puts it first again, and then there is nothing to try.
    order.gaveVerdict(0, now: now)
    tries = [order.takeReturn(of: 200)]
    order.failed(0, sentAt: now, now: now)
    order.gaveVerdict(1, now: now)
    tries.append(order.takeReturn(of: 1))
    // A server that is left out is not tried, nor at once when it is back.
    _ = order.lose(0, loss())
    tries.append(order.takeReturn(of: 2))
    #expect(tries == [false, true, false])
  }

  @Test mutating func `a verdict that moves the order between others lets no client ask the first server again`() {
    var order = order(3, attempts: 1)
    order.failed(0, sentAt: now, now: now)
    order.gaveVerdict(1, now: now)
    var tries = [order.takeReturn(of: 1)]
    order.failed(1, sentAt: now, now: now)
    order.gaveVerdict(2, now: now)
    #expect(order.first == 2)
    tries += [order.takeReturn(of: 1), order.takeReturn(of: 2)]
    #expect(tries == [true, false, true])
  }

  @Test mutating func `a server that was left out is tried after its time and not before`() {
    var order = order(2)
    _ = order.lose(0, loss())
    order.ended(0, true, now: now)
    #expect(order.servers == [1, 0])
    let tries = [order.takeReturn(of: 1), order.takeReturn(of: 2)]
    #expect(tries == [false, false])
  }
}
