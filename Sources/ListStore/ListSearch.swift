// ListSearch.swift -- finds the line of a list that decides about a name, in the text and not in a table.

import DNSWire
import Lists

/// The line of a list that decides about a name: the deepest one, and of equal ones an exception.
public struct ListFinding: Equatable, Sendable {
  /// From 1.
  public let line: Int
  /// The line, at most 80 characters; others than printable ASCII are shown as `\xNN`.
  public let text: String
  /// Whether it takes the name out of the list.
  public let isException: Bool
}

extension ListText {
  /// The line that decides about a name; nil if the list does not have it. Reads all of the text; blocks.
  ///
  /// - Parameter blocks: whether a rule that blocks uses the list: lines that are public suffixes do not count then.
  public func find(_ name: DomainName, blocks: Bool) throws(ListFault) -> ListFinding? {
    var best: (line: Int, labels: Int, isException: Bool)?
    func take(_ listed: ListedName, _ line: Int) -> LeftOutReason? {
      guard listed.selects(name), !blocks || listed.form == .exception || !listed.isPublicSuffix else { return nil }
      let (labels, isException) = (listed.labelCount, listed.form == .exception)
      if let best, (labels, isException ? 1 : 0) <= (best.labels, best.isException ? 1 : 0) { return nil }
      best = (line, labels, isException)
      return nil
    }
    var reader = ListReader()
    var pieces = pieces()
    while let piece = try pieces.next() { reader.read(piece, take) }
    // What is no list was refused before.
    try? reader.finish(take)
    guard let best else { return nil }
    return ListFinding(line: best.line, text: try shown(line: best.line), isException: best.isException)
  }

  private func shown(line wanted: Int) throws(ListFault) -> String {
    var pieces = pieces()
    var (line, octets) = (1, [UInt8]())
    while line <= wanted, let piece = try pieces.next() {
      for octet in piece {
        if octet == 0x0A { line += 1 }
        if line > wanted { break }
        if line == wanted, octet != 0x0A, octets.count <= ListReader.longestLine { octets.append(octet) }
      }
    }
    return LeftOut.Line(number: wanted, octets).text
  }
}
