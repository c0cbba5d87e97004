// ListReader.swift -- reads the text of a list in pieces: cuts it into lines and counts what is left out.

import Glibc

/// Why a text is no list.
public enum ListRefusal: Error, Hashable, Sendable {
  /// It begins with `<`: a page of a portal, or of an error.
  case markup
  /// It contains a zero octet.
  case binary
  /// No line selects a name.
  case empty
}

extension ListRefusal: CustomStringConvertible {
  public var description: String {
    switch self {
    case .markup: "it is a web page"
    case .binary: "it is not text"
    case .empty: "no line of it can be used"
    }
  }
}

/// The reader of one text.
public struct ListReader: ~Copyable {
  /// The longest line that is read, in octets without a byte order mark and the line's end.
  public static let longestLine = 4096
  /// What is looked at of a longer line: with a byte order mark and a carriage return it still is too long.
  private static let longestPart = longestLine + 5

  /// The number of the line that was read last, from 1.
  public private(set) var line = 0
  public private(set) var leftOut = LeftOut()
  /// The names that lines selected so far, as often as they stand there.
  public private(set) var names = 0
  private var parser = ListLine()
  /// The beginning of a line whose end has not come yet.
  private let carried = UnsafeMutablePointer<UInt8>.allocate(capacity: ListReader.longestPart)
  private var carriedCount = 0
  private var isBinary = false
  private var isMarkup: Bool?

  public init() {}

  deinit { carried.deallocate() }

  /// Reads the next piece.
  ///
  /// - Parameter take: gets each name with the number of its line, and says why it is left out.
  public mutating func read(
    _ piece: UnsafeRawBufferPointer, _ take: (ListedName, _ line: Int) -> LeftOutReason? = { _, _ in nil }
  ) {
    guard var next = piece.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    let end = next + piece.count
    if memchr(next, 0, piece.count) != nil { isBinary = true }
    while next < end {
      let found = memchr(next, 0x0A, end - next)
      let stop = found.map { UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) } ?? end
      if found != nil, carriedCount == 0 {
        finish(LineText(start: next, end: stop).prefix(ListReader.longestPart), take)
      } else {
        carry(next, stop - next)
        if found != nil { finishCarried(take) }
      }
      next = found == nil ? end : stop + 1
    }
  }

  /// Reads the line that no newline has ended.
  ///
  /// - Throws: `ListRefusal` if the whole text is no list.
  public mutating func finish(
    _ take: (ListedName, _ line: Int) -> LeftOutReason? = { _, _ in nil }
  ) throws(ListRefusal) {
    if carriedCount > 0 { finishCarried(take) }
    if isBinary { throw .binary }
    if isMarkup == true { throw .markup }
    if names == 0 { throw .empty }
  }

  private mutating func carry(_ octets: UnsafePointer<UInt8>, _ count: Int) {
    let room = min(count, ListReader.longestPart - carriedCount)
    (carried + carriedCount).update(from: octets, count: room)
    carriedCount += room
  }

  private mutating func finishCarried(_ take: (ListedName, _ line: Int) -> LeftOutReason?) {
    finish(LineText(start: carried, end: carried + carriedCount), take)
    carriedCount = 0
  }

  private mutating func finish(_ given: LineText, _ take: (ListedName, _ line: Int) -> LeftOutReason?) {
    line += 1
    // A byte order mark.
    var text = line == 1 && given.hasPrefix("\u{FEFF}") ? given.dropFirst(3) : given
    if text.last == UInt8(ascii: "\r") { text = text.dropLast() }
    if isMarkup == nil, !text.trimmed.isEmpty { isMarkup = text.trimmed.first == UInt8(ascii: "<") }
    guard text.count <= ListReader.longestLine else { return leftOut.count(.tooLong, line: line, text.trimmed) }
    let number = line
    var found = 0
    let reason = parser.read(text) {
      found += 1
      return take($0, number)
    }
    names += found
    if let reason { leftOut.count(reason, line: line, text.trimmed) }
  }
}
