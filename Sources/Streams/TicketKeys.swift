// TicketKeys.swift -- what a server encrypts its session tickets with (RFC 5077, RFC 8446 section 4.6.1).
//
// Who learns a key can read the connections of TLS 1.2 that were resumed with it. So a key lives for a day at most: twelve
// hours for new tickets, and twelve more to accept them.

import CTLS
import EventLoop

/// The key for new tickets, and the one before it. Loop thread only.
struct TicketKeys {
  private var current: Key?
  private var previous: Key?

  /// A key, which is wiped when it is released.
  final class Key {
    var octets = ctls_ticket_key()
    fileprivate let madeAt: BootInstant

    /// Nil without random octets.
    fileprivate init?(at now: BootInstant) {
      madeAt = now
      guard ctls_make_ticket_key(&octets) == 1 else { return nil }
    }

    deinit { OPENSSL_cleanse(&octets, MemoryLayout<ctls_ticket_key>.size) }

    fileprivate func has(name: UnsafePointer<UInt8>) -> Bool {
      withUnsafeBytes(of: &octets.name) { memcmp($0.baseAddress!, name, $0.count) == 0 }
    }
  }

  /// How a ticket relates to the keys.
  enum Match {
    /// It was made with the key for new tickets.
    case current(Key)
    /// It was made with the key before: it is accepted, and the client gets a new one.
    case previous(Key)
  }

  /// How long new tickets are made with a key.
  static let life = Duration.seconds(12 * 3600)

  /// When the next key ends; nil without keys.
  var nextEnd: BootInstant? {
    [current.map { $0.madeAt + TicketKeys.life }, previous.map { $0.madeAt + TicketKeys.life * 2 }].compactMap { $0 }
      .min()
  }

  /// The key for a new ticket; nil without random octets.
  mutating func forNewTicket(at now: BootInstant) -> Key? {
    endOld(at: now)
    if current == nil { current = Key(at: now) }
    return current
  }

  /// The key that a ticket was made with; nil if it is unknown, so that the client makes a full handshake.
  ///
  /// - Parameter name: the 16 octets with which the ticket begins.
  mutating func find(_ name: UnsafePointer<UInt8>, at now: BootInstant) -> Match? {
    endOld(at: now)
    if let current, current.has(name: name) { return .current(current) }
    if let previous, previous.has(name: name) { return .previous(previous) }
    return nil
  }

  /// Makes no more tickets with a key after twelve hours, and releases it after a day.
  mutating func endOld(at now: BootInstant) {
    if let key = current, now - key.madeAt >= TicketKeys.life { (previous, current) = (key, nil) }
    if let key = previous, now - key.madeAt >= TicketKeys.life * 2 { previous = nil }
  }
}
