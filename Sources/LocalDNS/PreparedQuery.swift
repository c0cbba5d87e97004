// PreparedQuery.swift -- a query ready to be sent, and the rule by which a response belongs to it.

import DNSWire

/// The octets of one query. Every one has an ID of its own (RFC 5452 section 9.2).
package struct PreparedQuery {
  /// The message.
  package let octets: [UInt8]
  /// Whether it has an OPT record.
  let hasEDNS: Bool
  private let nameLength: Int

  /// A query with a random ID.
  package init(_ question: Question, edns: EDNS?, checkingDisabled: Bool) {
    // Swift's random numbers on Linux are getrandom(2).
    var message = Message.query(question, id: .random(in: 0...UInt16.max), edns: edns)
    message.header.cd = checkingDisabled
    guard let octets = try? message.compose() else { preconditionFailure("one question always fits") }
    self.octets = octets
    hasEDNS = edns != nil
    nameLength = question.name.octets.count
  }

  /// What octets are to this query, when they came from the right server.
  package enum Verdict {
    /// Not a response to it: somebody guesses, or it is late.
    case foreign
    /// A response that is cut off and has to be fetched over TCP.
    case truncated
    /// The response.
    case response(Message)
  }

  /// Judges octets by ID and question (RFC 5452 section 4.2); case does not matter.
  package func judge(_ reply: ArraySlice<UInt8>) -> Verdict {
    guard isResponse(reply) else { return .foreign }
    // TC before all else: a message that was cut anywhere need not be well-formed.
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
      // A server that does not know EDNS may send back a header alone; it can only make us ask again without.
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
