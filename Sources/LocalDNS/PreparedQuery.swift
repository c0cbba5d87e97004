// PreparedQuery.swift -- a composed query and the check whether a response matches it.

import DNSWire

/// The octets of one query. Each query has its own random ID (RFC 5452 section 9.2).
package struct PreparedQuery {
  /// The DNS message.
  package let octets: [UInt8]
  /// Whether it has an OPT record.
  let hasEDNS: Bool
  private let nameLength: Int

  /// Composes a query with a random ID.
  package init(_ question: Question, edns: EDNS?, checkingDisabled: Bool) {
    // Swift's random numbers on Linux come from getrandom(2).
    var message = Message.query(question, id: .random(in: 0...UInt16.max), edns: edns)
    message.header.cd = checkingDisabled
    guard let octets = try? message.compose() else { preconditionFailure("one question always fits") }
    self.octets = octets
    hasEDNS = edns != nil
    nameLength = question.name.octets.count
  }

  /// What a datagram or a TCP message from the server is to this query.
  package enum ReplyMatch {
    /// Not a response to this query: spoofed or late.
    case foreign
    /// A truncated response, to be repeated over TCP.
    case truncated
    /// The response.
    case response(Message)
  }

  /// Compares ID and question (RFC 5452 section 4.2), ignoring case.
  package func judge(_ reply: ArraySlice<UInt8>) -> ReplyMatch {
    guard isResponse(reply) else { return .foreign }
    // TC comes first, because a truncated message may be malformed.
    if reply[reply.startIndex + 2] & 0x02 != 0 { return .truncated }
    guard let message = try? Message.parse(Array(reply)) else { return .foreign }
    return .response(message)
  }

  private func isResponse(_ reply: ArraySlice<UInt8>) -> Bool {
    let start = reply.startIndex
    guard reply.count >= Header.octetCount, reply[start] == octets[0], reply[start + 1] == octets[1] else {
      return false
    }
    // QR is set and OPCODE is QUERY.
    guard reply[start + 2] & 0xF8 == 0x80 else { return false }
    let code = reply[start + 3] & 0x0F
    let questionCount = Int(reply[start + 4]) << 8 | Int(reply[start + 5])
    if questionCount == 0 {
      // A server without EDNS may return only a header. The worst effect of a spoofed one is a query without EDNS.
      return code == ResponseCode.formErr.rawValue || code == ResponseCode.notImp.rawValue
    }
    let nameEnd = Header.octetCount + nameLength
    guard questionCount == 1, reply.count >= nameEnd + 4 else { return false }
    for offset in Header.octetCount..<nameEnd
    where asciiLowercase(reply[start + offset]) != asciiLowercase(octets[offset]) {
      return false
    }
    return (nameEnd..<nameEnd + 4).allSatisfy { reply[start + $0] == octets[$0] }
  }
}
