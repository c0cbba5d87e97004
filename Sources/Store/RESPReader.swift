// RESPReader.swift -- reads replies of RESP2 from octets in any split. What it reads may be a stranger's.
//
// Every octet is looked at once, whatever the split: a line is scanned on from where the octets ended, and content is
// waited for by its count.

import Glibc

/// An incremental reader of replies. After a failure it stays failed.
public struct RESPReader {
  /// Octets of content that one bulk string may have.
  public static let bulkLimit = 64 << 10
  /// Octets that a reply may have unless its reader is given another limit.
  public static let replyLimit = bulkLimit + 1024
  /// Values that one array may have.
  public static let countLimit = 4096
  /// Arrays in one another.
  public static let depthLimit = 6
  /// Octets between a number's type and its CR: the smallest number has a sign and 19 digits.
  private static let numberLimit = 20
  /// Octets from which on a buffer that is empty is released.
  private static let keptCapacity = 128 << 10

  private let limit: Int
  private var octets: [UInt8] = []
  /// Where the first octet is that was not used.
  private var position = 0
  /// Where the scan for a line's end goes on.
  private var scanned = 0
  /// Octets of the current reply before `position`.
  private var consumed = 0
  /// The content that the octets at `position` are.
  private var content: Int?
  private var open: [OpenArray] = []
  private var failure: RESPFailure?

  private struct OpenArray {
    var missing: Int
    var values: [RESPValue] = []
  }

  /// Creates a reader.
  ///
  /// - Parameter limit: octets that one reply may have.
  public init(limit: Int = RESPReader.replyLimit) { self.limit = limit }

  /// Adds octets that have arrived.
  public mutating func append(_ more: some Collection<UInt8>) {
    guard failure == nil else { return }
    octets.append(contentsOf: more)
  }

  /// Returns the next reply; nil if it is not complete.
  ///
  /// - Throws: `RESPFailure` if the octets are no reply; then each further call throws it too.
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

  /// What the next line or content is.
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

  /// Puts a value where it belongs; returns the reply that is complete with it.
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

  /// A bulk string's content with the CR LF behind it.
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

  /// A line without its type and its end.
  private mutating func takeLine(limit lineLimit: Int) throws(RESPFailure) -> ArraySlice<UInt8>? {
    let begin = position + 1
    // One octet beyond the limit must be the CR.
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

  /// A line with the length of what follows; -1 for nothing.
  private mutating func takeLength(limit: Int, or failure: RESPFailure) throws(RESPFailure) -> Int? {
    guard let line = try takeLine(limit: RESPReader.numberLimit) else { return nil }
    let length = try RESPReader.number(line)
    guard length >= -1 else { throw .length }
    guard length <= limit else { throw failure }
    return Int(length)
  }

  /// A number in its shortest form.
  private static func number(_ digits: ArraySlice<UInt8>) throws(RESPFailure) -> Int64 {
    let isNegative = digits.first == UInt8(ascii: "-")
    let magnitude = isNegative ? digits.dropFirst() : digits
    guard let first = magnitude.first, first != UInt8(ascii: "0") || digits.count == 1 else { throw .number }
    var value: Int64 = 0
    for digit in magnitude {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { throw .number }
      let units = Int64(digit - UInt8(ascii: "0"))
      // Negative all along: the smallest number has no positive counterpart.
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

  /// Begins the next reply, and lets go of octets that were used.
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
