// AssembledMessage.swift -- a message whose sections were stored without a header.

extension ComposedResponse {
  /// The records, parsed.
  public func message(to question: Question) -> Message? {
    Message.assembled(
      question.name, type: question.type, answers: answers, authorities: authorities, responseCode: responseCode,
      body: body)
  }
}

extension Message {
  /// Puts a header and a question before a body and parses the whole.
  public static func assembled(
    _ name: DomainName, type: RecordType = .a, answers: UInt16, authorities: UInt16, responseCode: ResponseCode,
    body: [UInt8]
  ) -> Message? {
    var octets: [UInt8] = [0, 0, 0x80, UInt8(responseCode.rawValue & 0xF), 0, 1]
    for count in [answers, authorities, 0] { octets += [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] }
    octets += name.octets + [UInt8(type.rawValue >> 8), UInt8(truncatingIfNeeded: type.rawValue), 0, 1] + body
    return try? Message.parse(octets)
  }
}
