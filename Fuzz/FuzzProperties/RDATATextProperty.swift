// RDATATextProperty.swift -- RDATA that was read from text is sound, and survives its own text.

import DNSWire

/// The parser of presentation text as JSON services send it. The input is a type and the text: `MX 10 mail.example.`
public struct RDATATextProperty: Property {
  /// The fuzz target.
  public static let name = "RDATAText"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let words = String(decoding: input, as: UTF8.self).split(
      separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
    guard words.count == 2, let type = RecordType(text: String(words[0])) else { return }
    guard let rdata = RDATA.parse(text: String(words[1]), type: type) else { return }
    try require(RDATA.isValid(rdata, type: type), "RDATA that is not of its type's form")
    let text = RDATA.text(rdata, type: type)
    try require(isOneLine(text), "a text of several lines: \(text.debugDescription)")
    try require(RDATA.parse(text: text, type: type) == rdata, "\(text) is other RDATA")
  }
}
