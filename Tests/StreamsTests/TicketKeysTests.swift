// TicketKeysTests.swift -- keys of session tickets change every twelve hours, and two are accepted.

import CTLS
import EventLoop
import Testing

@testable import Streams

@Suite struct `Keys of tickets` {
  private func name(of key: TicketKeys.Key) -> [UInt8] { withUnsafeBytes(of: key.octets.name) { Array($0) } }

  /// The name of the key for new tickets; fails without one.
  private func newest(_ keys: inout TicketKeys, at now: BootInstant) throws -> [UInt8] {
    let key = keys.forNewTicket(at: now)
    return name(of: try #require(key))
  }

  private func hours(_ count: Int) -> BootInstant { BootInstant(nanoseconds: 0) + .seconds(3600 * count) }

  /// Whether a ticket that was made with a key is accepted, and whether it is renewed.
  private func find(_ name: [UInt8], in keys: inout TicketKeys, at now: BootInstant) -> Bool? {
    switch keys.find(name, at: now) {
    case nil: nil
    case .current: false
    case .previous: true
    }
  }

  @Test func `a key makes tickets for twelve hours, and is accepted for twelve more`() throws {
    var keys = TicketKeys()
    let first = try newest(&keys, at: hours(0))
    let later = try newest(&keys, at: hours(11))
    #expect(later == first)
    #expect(find(first, in: &keys, at: hours(11)) == false)
    let second = try newest(&keys, at: hours(12))
    #expect(second != first)
    #expect(find(first, in: &keys, at: hours(13)) == true)
    #expect(find(second, in: &keys, at: hours(13)) == false)
    _ = keys.forNewTicket(at: hours(24))
    #expect(find(first, in: &keys, at: hours(24)) == nil)
    #expect(find(second, in: &keys, at: hours(24)) == true)
  }

  @Test func `keys end twelve hours and a day after they were made, and are released then`() throws {
    var keys = TicketKeys()
    #expect(keys.nextEnd == nil)
    weak let first = keys.forNewTicket(at: hours(0))
    #expect(keys.nextEnd == hours(12))
    keys.endOld(at: hours(12))
    #expect(keys.nextEnd == hours(24))
    weak let second = keys.forNewTicket(at: hours(13))
    #expect(keys.nextEnd == hours(24) && first != nil)
    keys.endOld(at: hours(24))
    #expect(keys.nextEnd == hours(25) && first == nil && second != nil)
    keys.endOld(at: hours(37))
    #expect(keys.nextEnd == nil && second == nil)
  }

  @Test func `a key that was not used for a day is not accepted`() throws {
    var keys = TicketKeys()
    let first = try newest(&keys, at: hours(0))
    #expect(find(first, in: &keys, at: hours(24)) == nil)
    #expect(find([UInt8](repeating: 0, count: 16), in: &keys, at: hours(24)) == nil)
  }
}
