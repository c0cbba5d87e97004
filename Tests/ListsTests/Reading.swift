// Reading.swift -- what the reader makes of a text, as values that a test can compare.

import DNSWire

@testable import Lists

/// The result of reading one text.
struct Reading: Equatable {
  /// A name that a line selects.
  struct Name: Hashable, CustomStringConvertible {
    let form: ListForm
    /// Without the final dot.
    let text: String
    let line: Int

    var description: String { "\(line): \(form) \(text)" }
  }

  private(set) var names: [Name] = []
  private(set) var leftOut = LeftOut()
  private(set) var refusal: ListRefusal?
  /// The number of the last line.
  private(set) var lines = 0

  init(_ text: String) { self.init(Array(text.utf8)) }

  /// - Parameter cuts: where the text is cut into pieces, in ascending order; none behind its end.
  init(_ octets: [UInt8], cuts: [Int] = []) {
    var reader = ListReader()
    let cuts = cuts.filter { $0 <= octets.count }
    for (start, end) in zip([0] + cuts, cuts + [octets.count]) {
      // Memory of its own for each piece, which ends with the piece.
      Array(octets[start..<end]).withUnsafeBytes { reader.read($0) { take($0, $1) } }
    }
    do throws(ListRefusal) { try reader.finish { take($0, $1) } } catch { refusal = error }
    leftOut = reader.leftOut
    lines = reader.line
  }

  private mutating func take(_ name: ListedName, _ line: Int) -> LeftOutReason? {
    names.append(Name(form: name.form, text: String(name.name.text.dropLast()), line: line))
    return nil
  }

  /// The names by form, as `subtree a.example, alone b.example`.
  var text: String { names.map { "\($0.form) \($0.text)" }.joined(separator: ", ") }

  /// The only reason for which something is left out; nil if nothing is, or for several.
  var reason: LeftOutReason? {
    let reasons = LeftOutReason.allCases.filter { leftOut[$0] > 0 }
    return reasons.count == 1 ? reasons[0] : nil
  }
}

extension ListNames {
  /// Reads a text in pieces of that many octets.
  init(_ text: String, _ key: ListKey, blocks: Bool = false, piece: Int = 65_536) throws {
    var rest = Array(text.utf8)[...]
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 1)
    defer { memory.deallocate() }
    try self.init(key, blocks: blocks) {
      guard !rest.isEmpty else { return nil }
      let next = rest.prefix(piece)
      rest = rest.dropFirst(piece)
      memory.copyBytes(from: next)
      return UnsafeRawBufferPointer(rebasing: memory[..<next.count])
    }
  }
}

extension ListTable {
  /// The uses that select a name, which is in lower case.
  func uses(_ name: String) -> UInt64 { Query(name).uses(self) }
}

/// A name as a query has it: octets, and where its labels begin.
final class Query {
  private let octets: UnsafeMutablePointer<UInt8>
  private var starts = InlineArray<128, UInt8>(repeating: 0)
  private var labels = 0

  init(_ name: String) {
    let wire = DomainName(text: name)!.octets
    octets = .allocate(capacity: wire.count)
    octets.initialize(from: wire, count: wire.count)
    var position = 0
    while wire[position] != 0 {
      starts[labels] = UInt8(position)
      labels += 1
      position += Int(wire[position]) + 1
    }
  }

  deinit { octets.deallocate() }

  func uses(_ table: ListTable) -> UInt64 { table.lookup.uses(of: octets, starts, labels: labels) }
}
