// ListNames.swift -- the names of one list as it was read: a hash each, no strings.

/// What a table needs of a list.
public struct ListNames: Sendable {
  /// The hashes, by `ListForm`.
  private(set) var names = [[UInt64]](repeating: [], count: ListForm.allCases.count)
  /// Those of public suffixes, which rules that block leave out.
  private(set) var publicSuffixes = [[UInt64]](repeating: [], count: ListForm.allCases.count)
  /// What is left out, and why.
  public private(set) var leftOut = LeftOut()

  /// All lines that select a name; one that stands twice counts twice.
  var count: Int { (names + publicSuffixes).reduce(0) { $0 + $1.count } }

  public init() {}

  /// Reads a whole text.
  ///
  /// - Parameters:
  ///   - blocks: whether a rule that blocks uses the list: public suffixes are told apart then.
  ///   - next: gives the next piece; nil at the end.
  /// - Throws: `ListRefusal`, or what `next` throws
  public init(
    _ key: ListKey, blocks: Bool, next: () throws -> UnsafeRawBufferPointer?
  ) throws {
    var reader = ListReader()
    while let piece = try next() { reader.read(piece) { name, _ in take(name, key, blocks: blocks) } }
    try reader.finish { name, _ in take(name, key, blocks: blocks) }
    leftOut = reader.leftOut
  }

  /// Reads a text in memory.
  ///
  /// - Throws: `ListRefusal`
  public init(_ key: ListKey, blocks: Bool, text: String) throws {
    var text = text
    self = try text.withUTF8 { octets in
      var rest: UnsafeRawBufferPointer? = UnsafeRawBufferPointer(octets)
      return try ListNames(key, blocks: blocks) {
        defer { rest = nil }
        return rest
      }
    }
  }

  private mutating func take(_ name: ListedName, _ key: ListKey, blocks: Bool) -> LeftOutReason? {
    let form = Int(name.form.rawValue)
    guard blocks, name.form != .exception, name.isPublicSuffix else {
      names[form].append(key.hash(name))
      return nil
    }
    publicSuffixes[form].append(key.hash(name))
    return .publicSuffix
  }
}
