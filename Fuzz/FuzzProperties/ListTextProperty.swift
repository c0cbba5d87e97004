// ListTextProperty.swift -- a list says what its lines say, in pieces of any size, and so does the table that is made of it.

import DNSWire
import Lists

/// The text of a list.
public struct ListTextProperty: Property {
  /// The fuzz target.
  public static let name = "ListText"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let whole = ReadText([input[...]])
    try checkLeftOut(whole)
    // The input says how it is cut.
    let size = 1 + Int(input.first ?? 0) + 16 * Int(input.last ?? 0)
    let pieces = stride(from: 0, to: input.count, by: size).map { input[$0..<min(input.count, $0 + size)] }
    try require(ReadText(pieces) == whole, "another list in pieces of \(size) octets")
    try checkLines(input, whole)
    guard whole.refusal == nil else { return }
    try checkTable(input, whole.names)
  }

  private func checkLeftOut(_ text: ReadText) throws(Violation) {
    try require(text.leftOut.total <= text.lines, "more lines left out than there are")
    for reason in LeftOutReason.allCases {
      let line = text.leftOut.first(reason)
      try require((line != nil) == (text.leftOut[reason] > 0), "a reason without a line")
      guard let line else { continue }
      try require((1...text.lines).contains(line.number), "line \(line.number) of \(text.lines)")
      try require(line.text.utf8.count <= 80 && line.text.utf8.allSatisfy { 0x20..<0x7F ~= $0 }, "not fit to be shown")
    }
  }

  /// Each line says the same alone.
  private func checkLines(_ input: [UInt8], _ whole: ReadText) throws(Violation) {
    var names: [ReadText.Name] = []
    var counts = [Int](repeating: 0, count: LeftOutReason.allCases.count)
    for (index, line) in input.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      // Only the first line may begin with a byte order mark.
      let alone = ReadText(index == 0 ? [line] : [[0x0A], line])
      names += alone.names.map { ReadText.Name(form: $0.form, name: $0.name, line: index + 1) }
      for reason in LeftOutReason.allCases { counts[Int(reason.rawValue)] += alone.leftOut[reason] }
    }
    try require(names == whole.names, "other names when lines are read apart")
    try require(LeftOutReason.allCases.map { whole.leftOut[$0] } == counts, "other counts when lines are read apart")
  }

  /// The table selects what the names say, by plain comparison.
  private func checkTable(_ input: [UInt8], _ names: [ReadText.Name]) throws(Violation) {
    let key = ListKey()
    var isRead = false
    let list = try? input.withUnsafeBytes { octets in
      try ListNames(key, blocks: false) {
        defer { isRead = true }
        return isRead ? nil : octets
      }
    }
    guard let list else { throw Violation("refused at the second time") }
    let table = ListTable([list], uses: [ListUse(list: 0, blocks: false)], key)
    var forms: [[UInt8]: Set<ListForm>] = [:]
    for name in names { forms[name.name.octets, default: []].insert(name.form) }
    try require(table.nameCounts == [forms.count], "\(table.nameCounts[0]) names instead of \(forms.count)")
    for name in forms.keys {
      for query in [name, [1, 0x78] + name] where query.count <= NameLimit.name {
        try require(uses(of: query, table) == (isSelected(query, forms) ? 1 : 0), "another choice for \(query)")
      }
    }
  }

  /// Whether the deepest line that counts takes the name in.
  private func isSelected(_ name: [UInt8], _ forms: [[UInt8]: Set<ListForm>]) -> Bool {
    var rest = name[...]
    while let length = rest.first, length > 0 {
      if let found = forms[Array(rest)] {
        if found.contains(.exception) { return false }
        if found.contains(.subtree) || found.contains(.alone) && rest.count == name.count { return true }
      }
      rest = rest.dropFirst(Int(length) + 1)
    }
    return false
  }

  private func uses(of name: [UInt8], _ table: ListTable) -> UInt64 {
    var starts = InlineArray<128, UInt8>(repeating: 0)
    var (labels, position) = (0, 0)
    while name[position] != 0 {
      starts[labels] = UInt8(position)
      labels += 1
      position += Int(name[position]) + 1
    }
    return name.withUnsafeBufferPointer { table.lookup.uses(of: $0.baseAddress!, starts, labels: labels) }
  }
}

/// What the reader makes of a text.
private struct ReadText: Equatable {
  struct Name: Equatable {
    let form: ListForm
    let name: DomainName
    let line: Int
  }

  let names: [Name]
  let leftOut: LeftOut
  let refusal: ListRefusal?
  let lines: Int

  init(_ pieces: [ArraySlice<UInt8>]) {
    var reader = ListReader()
    var found: [Name] = []
    func take(_ name: ListedName, _ line: Int) -> LeftOutReason? {
      found.append(Name(form: name.form, name: name.name, line: line))
      return nil
    }
    for piece in pieces { piece.withUnsafeBytes { reader.read($0, take) } }
    var refused: ListRefusal?
    do throws(ListRefusal) { try reader.finish(take) } catch { refused = error }
    (names, refusal, leftOut, lines) = (found, refused, reader.leftOut, reader.line)
  }
}
