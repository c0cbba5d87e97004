// RESPReader.swift -- parses RESP2 replies incrementally. The input is untrusted.
//
// Each octet is scanned once, however the input is split: the scan for a line's end continues where the input ended,
// and a bulk string is copied once its announced length has arrived. All lengths, counts and depths are limited.

/// An incremental parser of replies. A failure is final: create another reader for another connection.
public struct RESPReader {
  /// The longest bulk string in octets.
  public static let bulkLimit = 64 << 10
  /// The default limit of a reply in octets.
  public static let replyLimit = bulkLimit + 1024
  /// The most values in one array.
  public static let countLimit = 4096
  /// The deepest nesting of arrays.
  public static let depthLimit = 6
  /// Octets between a number's type and its CR: a sign and 19 digits.
  private static let numberLimit = 20
  /// An empty buffer of more octets is freed rather than reused.
  private static let keptCapacity = 128 << 10

  private let limit: Int
  private var octets: [UInt8] = []
  /// The index of the first octet that is not parsed.
  private var position = 0
  /// The index at which the scan for a line's end continues.
  private var scanned = 0
  /// Octets of the current reply before `position`.
  private var consumed = 0
  /// The length of the bulk string that starts at `position`; nil if a line starts there.
  private var content: Int?
  /// Arrays with missing values, the outermost first.
  private var open: [OpenArray] = []
  private var failure: RESPFailure?

  private struct OpenArray {
    var missing: Int
    var values: [RESPValue] = []
  }

  /// - Parameter limit: the longest reply in octets.
  public init(limit: Int = RESPReader.replyLimit) { self.limit = limit }

  /// Appends input. After a failure it is ignored.
  public mutating func append(_ more: some Collection<UInt8>) {
    guard failure == nil else { return }
    octets.append(contentsOf: more)
  }

  /// Returns the next reply; nil if it is incomplete.
  ///
  /// - Throws: `RESPFailure` if the input is malformed or exceeds a limit; each further call throws the same error.
  /// - Complexity: O(n) in the octets since the last call, amortized.
  public mutating func next() throws(RESPFailure) -> RESPValue? {
    if let failure { throw failure }
    do throws(RESPFailure) {
      while let value = try nextPart() {
        guard let reply = add(value) else { continue }
        release()
        return reply
      }
      return nil
    } catch {
      failure = error
      octets = []
      open = []
      throw error
    }
  }

  /// What one line or bulk string contributes to a reply.
  private enum Part {
    case value(RESPValue)
    case array(count: Int)
  }

  private mutating func nextPart() throws(RESPFailure) -> Part? {
    if let content { return try takeContent(content) }
    guard position < octets.count else { return nil }
    let type = octets[position]
    switch type {
    case UInt8(ascii: "+"), UInt8(ascii: "-"):
      guard let line = try takeLine(limit: limit) else { return nil }
      let text = RESPText.line(line)
      return .value(type == UInt8(ascii: "+") ? .status(text) : .error(text))
    case UInt8(ascii: ":"):
      guard let line = try takeLine(limit: RESPReader.numberLimit) else { return nil }
      return .value(.integer(try RESPReader.number(line)))
    case UInt8(ascii: "$"):
      guard let count = try takeLength(limit: RESPReader.bulkLimit, or: .size) else { return nil }
      guard count >= 0 else { return .value(.null) }
      guard consumed + count + 2 <= limit else { throw .size }
      content = count
      return try takeContent(count)
    case UInt8(ascii: "*"):
      guard open.count < RESPReader.depthLimit else { throw .nesting }
      guard let count = try takeLength(limit: RESPReader.countLimit, or: .length) else { return nil }
      return count >= 0 ? .array(count: count) : .value(.null)
    default: throw .type(type)
    }
  }

  /// Adds a part to the innermost array; returns the reply if it is complete.
  private mutating func add(_ part: Part) -> RESPValue? {
    var value: RESPValue
    switch part {
    case .array(let count) where count > 0:
      open.append(OpenArray(missing: count))
      return nil
    case .array: value = .array([])
    case .value(let other): value = other
    }
    while let last = open.indices.last {
      open[last].values.append(value)
      open[last].missing -= 1
      guard open[last].missing == 0 else { return nil }
      value = .array(open.removeLast().values)
    }
    return value
  }

  /// Parses a bulk string's content and its CR LF; nil if incomplete.
  private mutating func takeContent(_ count: Int) throws(RESPFailure) -> Part? {
    let end = position + count
    if octets.count > end, octets[end] != 0x0D { throw .lineEnd }
    guard octets.count >= end + 2 else { return nil }
    guard octets[end + 1] == 0x0A else { throw .lineEnd }
    let value = RESPValue.bulk(Array(octets[position..<end]))
    content = nil
    consume(count + 2)
    return .value(value)
  }

  /// Parses a line; returns it without its type and CR LF, nil if incomplete.
  private mutating func takeLine(limit lineLimit: Int) throws(RESPFailure) -> ArraySlice<UInt8>? {
    let begin = position + 1
    // The octet after the limit must be the CR.
    let last = min(begin + lineLimit, position + limit - consumed)
    var end = max(scanned, begin)
    while end < octets.count, octets[end] != 0x0D {
      guard octets[end] != 0x0A else { throw .lineEnd }
      guard end < last else { throw lineLimit < limit ? .number : .size }
      end += 1
    }
    scanned = end
    guard end + 1 < octets.count else { return nil }
    guard octets[end + 1] == 0x0A else { throw .lineEnd }
    guard consumed + end + 2 - position <= limit else { throw .size }
    let line = octets[begin..<end]
    consume(end + 2 - position)
    return line
  }

  /// Parses a line with a length; -1 means null. Throws `failure` if the length exceeds the limit.
  private mutating func takeLength(limit: Int, or failure: RESPFailure) throws(RESPFailure) -> Int? {
    guard let line = try takeLine(limit: RESPReader.numberLimit) else { return nil }
    let length = try RESPReader.number(line)
    guard length >= -1 else { throw .length }
    guard length <= limit else { throw failure }
    return Int(length)
  }

  /// Parses a number in canonical form: no plus sign, no leading zeros.
  private static func number(_ digits: ArraySlice<UInt8>) throws(RESPFailure) -> Int64 {
    let isNegative = digits.first == UInt8(ascii: "-")
    let magnitude = isNegative ? digits.dropFirst() : digits
    guard let first = magnitude.first, first != UInt8(ascii: "0") || digits.count == 1 else { throw .number }
    var value: Int64 = 0
    for digit in magnitude {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { throw .number }
      let units = Int64(digit - UInt8(ascii: "0"))
      // Accumulates the negative value, since the smallest number has no positive counterpart.
      let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, underflow) = tens.subtractingReportingOverflow(units)
      guard !overflow, !underflow else { throw .number }
      value = sum
    }
    guard !isNegative else { return value }
    guard value != Int64.min else { throw .number }
    return -value
  }

  private mutating func consume(_ count: Int) {
    position += count
    consumed += count
    scanned = position
  }

  /// Starts the next reply, and removes parsed octets once they are more than half of the buffer.
  private mutating func release() {
    consumed = 0
    if position == octets.count {
      octets.removeAll(keepingCapacity: octets.capacity <= RESPReader.keptCapacity)
    } else if position >= 4096, position > octets.count / 2 {
      octets.removeFirst(position)
    } else {
      return
    }
    position = 0
    scanned = 0
  }
}
