// Difference.swift -- shows a change in the form of a unified diff.

extension Change {
  /// The change in lines: those that go begin with `-`, those that come with `+`.
  public var difference: String { Change.difference(path, from: before, to: after, kind) }

  static func difference(_ path: String, from before: FileState, to after: FileState, _ kind: Kind = .replace) -> String
  {
    var text = "--- \(before == .absent ? "(nothing)" : path)\(attributes(before, after))\n"
    text += "+++ \(after == .absent ? "(nothing)" : path)\(attributes(after, before))"
    text += kind == .overwrite ? " (overwritten in place, since it is mounted by itself)\n" : "\n"
    let (old, new) = (lines(before), lines(after))
    let head = zip(old, new).prefix { $0 == $1 }.count
    let tail = zip(old.dropFirst(head).reversed(), new.dropFirst(head).reversed()).prefix { $0 == $1 }.count
    for line in old[..<head] { text += " \(line)\n" }
    for line in old[head..<(old.count - tail)] { text += "-\(line)\n" }
    for line in new[head..<(new.count - tail)] { text += "+\(line)\n" }
    for line in old[(old.count - tail)...] { text += " \(line)\n" }
    return text
  }

  private static func lines(_ state: FileState) -> [String] {
    switch state {
    case .absent: return []
    case .file(let octets, _):
      guard let text = String(validating: octets, as: UTF8.self) else { return ["(\(octets.count) octets, no text)"] }
      guard !text.isEmpty else { return [] }
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      return text.hasSuffix("\n") ? lines.dropLast() : lines.dropLast() + ["\(lines.last!) (no newline at the end)"]
    case .link(let target): return ["(symbolic link to \(target))"]
    case .folder: return ["(folder)"]
    case .other: return ["(no file)"]
    }
  }

  /// Mode and owner, where they differ or are not what everybody expects.
  private static func attributes(_ state: FileState, _ other: FileState) -> String {
    guard case .file(_, let attributes) = state else { return "" }
    let plain = FileAttributes(mode: 0o644)
    var reference = plain
    if case .file(_, let others) = other { reference = others }
    let isPlain =
      attributes.mode == plain.mode && attributes.mode == reference.mode && attributes.user == reference.user
      && attributes.group == reference.group
    guard !isPlain else { return "" }
    return "\tmode \(String(attributes.mode, radix: 8)), owner \(attributes.user):\(attributes.group)"
  }
}
