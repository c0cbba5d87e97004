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

  private struct Key {
    var octets: ctls_ticket_key
    var madeAt: BootInstant
  }

  /// How a ticket relates to the keys.
  enum Match {
    /// It was made with the key for new tickets.
    case current(ctls_ticket_key)
    /// It was made with the key before: it is accepted, and the client gets a new one.
    case previous(ctls_ticket_key)
  }

  /// How long new tickets are made with a key.
  static let life = Duration.seconds(12 * 3600)

  /// The key for a new ticket; nil without random octets.
  mutating func forNewTicket(at now: BootInstant) -> ctls_ticket_key? {
    renew(at: now)
    if current == nil {
      var octets = ctls_ticket_key()
      guard ctls_make_ticket_key(&octets) == 1 else { return nil }
      current = Key(octets: octets, madeAt: now)
    }
    return current?.octets
  }

  /// The key that a ticket was made with; nil if it is unknown, so that the client makes a full handshake.
  ///
  /// - Parameter name: the 16 octets with which the ticket begins.
  mutating func find(_ name: UnsafePointer<UInt8>, at now: BootInstant) -> Match? {
    renew(at: now)
    func has(_ key: Key?) -> Bool {
      guard let key else { return false }
      return withUnsafeBytes(of: key.octets.name) { memcmp($0.baseAddress!, name, $0.count) == 0 }
    }
    if let current, has(current) { return .current(current.octets) }
    if let previous, has(previous) { return .previous(previous.octets) }
    return nil
  }

  private mutating func renew(at now: BootInstant) {
    guard let made = current?.madeAt, now - made >= TicketKeys.life else { return }
    previous = now - made >= TicketKeys.life * 2 ? nil : current
    current = nil
  }
}
