// MessageProperty.swift -- what is parsed can be composed, and is then parsed as the same again.

import DNSWire

/// The parser of messages from upstream servers, and the composer.
public struct MessageProperty: Property {
  /// The fuzz target.
  public static let name = "Message"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard var message = try? Message.parse(input) else { return }
    // Records of other classes than IN, and those that cannot be read, are counted and kept nowhere.
    (message.foreignRecordCount, message.unreadableRecordCount) = (0, 0)
    for record in message.answers + message.authorities + message.additionals {
      try require(DomainName(octets: record.owner.octets) != nil, "an invalid owner name")
      try require(
        RDATA.isValid(record.rdata, type: record.type), "RDATA of type \(record.type) that is not of its form")
      let text = RDATA.text(record.rdata, type: record.type)
      try require(isOneLine(text), "a text of several lines: \(text.debugDescription)")
      try require(RDATA.parse(text: text, type: record.type) == record.rdata, "\(record.type) \(text) is other RDATA")
    }
    // Names come out uncompressed, which may be more than a message can hold.
    guard let composed = try? message.compose() else { return }
    guard let again = try? Message.parse(composed) else { throw Violation("what was composed cannot be parsed") }
    try require(again == message, "what was composed is another message")
    try require((try? again.compose()) == composed, "the same message is composed of other octets")
  }
}
