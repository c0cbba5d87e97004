// StoreReplyProperty.swift -- a store's replies are the same in any split, within their limits, and say what stands there.

import Store

/// The replies of a Redis server. The input is an octet that says how the stream is split and how large a reply may be, and
/// the stream.
public final class StoreReplyProperty: Property {
  /// The fuzz target.
  public static let name = "StoreReply"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let mode = input.first else { return }
    let stream = input.dropFirst()
    let limit = mode & 0x80 != 0 ? 64 : RESPReader.replyLimit
    let whole = read(stream, piece: stream.count, limit)
    try require(whole == read(stream, piece: Int(mode & 0x7F), limit), "other replies in another split")
    var composed: [UInt8] = []
    for value in whole.values {
      try checkLimits(value, depth: 0)
      var octets: [UInt8] = []
      compose(value, into: &octets)
      composed += octets
      guard isShort(value) else { continue }
      let again = read(octets[...], piece: octets.count, RESPReader.replyLimit)
      try require(again == Outcome(values: [value], failure: nil), "another reply when read again")
    }
    // Numbers, octets and arrays are written in one way only.
    let isPlain = whole.values.allSatisfy(isPlain)
    try require(!isPlain || stream.starts(with: composed), "other octets than in the stream")
  }

  private struct Outcome: Equatable {
    var values: [RESPValue]
    var failure: RESPFailure?
  }

  private func read(_ stream: ArraySlice<UInt8>, piece: Int, _ limit: Int) -> Outcome {
    var reader = RESPReader(limit: limit)
    var outcome = Outcome(values: [])
    var rest = stream
    while !rest.isEmpty {
      let some = rest.prefix(max(1, piece))
      rest = rest.dropFirst(some.count)
      reader.append(some)
      do throws(RESPFailure) {
        while let value = try reader.next() { outcome.values.append(value) }
      } catch {
        outcome.failure = error
        return outcome
      }
    }
    return outcome
  }

  private func checkLimits(_ value: RESPValue, depth: Int) throws(Violation) {
    switch value {
    case .status(let text), .error(let text):
      try require(isOneLine(text), "a text with control characters")
      // An octet that is no UTF-8 becomes three.
      try require(text.utf8.count <= 600, "\(text.utf8.count) octets of text")
    case .integer, .null: break
    case .bulk(let octets): try require(octets.count <= RESPReader.bulkLimit, "\(octets.count) octets")
    case .array(let values):
      try require(values.count <= RESPReader.countLimit, "\(values.count) values")
      try require(depth < RESPReader.depthLimit, "an array too deep")
      for value in values { try checkLimits(value, depth: depth + 1) }
    }
  }

  /// Whether no text in it is cut when it is read.
  private func isShort(_ value: RESPValue) -> Bool {
    switch value {
    case .status(let text), .error(let text): text.utf8.count <= 200
    case .integer, .null, .bulk: true
    case .array(let values): values.allSatisfy(isShort)
    }
  }

  /// Whether there is one way to write it.
  private func isPlain(_ value: RESPValue) -> Bool {
    switch value {
    case .status, .error, .null: false
    case .integer, .bulk: true
    case .array(let values): values.allSatisfy(isPlain)
    }
  }

  private func compose(_ value: RESPValue, into octets: inout [UInt8]) {
    switch value {
    case .status(let text): octets += Array("+\(text)\r\n".utf8)
    case .error(let text): octets += Array("-\(text)\r\n".utf8)
    case .integer(let number): octets += Array(":\(number)\r\n".utf8)
    case .null: octets += Array("$-1\r\n".utf8)
    case .bulk(let content): octets += Array("$\(content.count)\r\n".utf8) + content + Array("\r\n".utf8)
    case .array(let values):
      octets += Array("*\(values.count)\r\n".utf8)
      for value in values { compose(value, into: &octets) }
    }
  }
}
