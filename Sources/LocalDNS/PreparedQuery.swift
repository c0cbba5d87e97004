// PreparedQuery.swift -- a composed query, and what a reply is to it.

import DNSWire

/// The octets of one query.
package struct PreparedQuery {
  /// The DNS message.
  package let octets: [UInt8]
  /// Whether it has an OPT record.
  let hasEDNS: Bool
  private let nameLength: Int

  /// Composes a query.
  ///
  /// - Parameter id: by default a random one (RFC 5452 section 9.2).
  package init(_ question: Question, edns: EDNS?, checkingDisabled: Bool, id: UInt16? = nil) {
    // Swift's random numbers on Linux come from getrandom(2).
    var message = Message.query(question, id: id ?? .random(in: 0...UInt16.max), edns: edns)
    message.header.cd = checkingDisabled
    guard let octets = try? message.compose() else { preconditionFailure("one question always fits") }
    self.octets = octets
    hasEDNS = edns != nil
    nameLength = question.name.octets.count
  }

  var id: UInt16 { UInt16(octets[0]) << 8 | UInt16(octets[1]) }

  /// What a datagram or a TCP message from the server is to this query.
  package enum ReplyMatch {
    /// It has another ID: spoofed or late.
    case foreign
    /// A truncated response, or one that is shorter than it says, with the records that arrived in whole.
    case truncated(Message?)
    /// An error without a question: the server does not say what it refuses.
    case bareError(ResponseCode)
    /// A reply that cannot be used.
    case unusable(ReplyFault)
    case response(Message)
  }

  /// Compares ID and question (RFC 5452 section 4.2), ignoring case.
  package func judge(_ reply: ArraySlice<UInt8>) -> ReplyMatch {
    guard reply.count >= 2, reply.prefix(2).elementsEqual(octets.prefix(2)) else { return .foreign }
    let octets = Array(reply)
    guard octets.count >= Header.octetCount else { return .truncated(nil) }
    // QR is set and OPCODE is QUERY.
    guard octets[2] & 0xF8 == 0x80 else { return .unusable(.noResponse) }
    let questions = Int(octets[4]) << 8 | Int(octets[5])
    if questions == 0, octets[3] & 0x0F != 0 { return .bareError(ResponseCode(rawValue: UInt16(octets[3] & 0x0F))) }
    let end = Header.octetCount + nameLength + 4
    guard questions == 1, zip(octets, self.octets).dropFirst(Header.octetCount).prefix(nameLength + 4).allSatisfy(same)
    else { return .unusable(.otherQuestion) }
    guard octets.count >= end else { return .truncated(nil) }
    do throws(WireError) {
      let message = try Message.parse(octets)
      return message.header.tc ? .truncated(message) : .response(message)
    } catch {
      let isCut = error == .truncated || octets[2] & 0x02 != 0
      return isCut ? .truncated(Message.wholeRecords(of: octets)) : .unusable(.malformed)
    }
  }

  private func same(_ octets: (UInt8, UInt8)) -> Bool { asciiLowercase(octets.0) == asciiLowercase(octets.1) }
}
