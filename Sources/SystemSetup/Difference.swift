// Difference.swift -- formats a change as a unified diff.

extension Change {
  /// The change as a diff: removed lines begin with `-`, added ones with `+`. Computed on each call.
  public var difference: String { Change.difference(path, from: before, to: after, kind) }

  static func difference(_ path: String, from before: FileState, to after: FileState, _ kind: Kind = .replace) -> String
  {
    var text = "--- \(before == .absent ? "(nothing)" : path)\(attributes(before, after))\n"
    text += "+++ \(after == .absent ? "(nothing)" : path)\(attributes(after, before))"
    text += kind == .overwrite ? " (overwritten in place, because it is a mount point)\n" : "\n"
    let (old, new) = (lines(before), lines(after))
    var (removed, inserted) = (Set<Int>(), Set<Int>())
    for step in new.difference(from: old) {
      switch step {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var (place, newPlace) = (0, 0)
    while place < old.count || newPlace < new.count {
      if removed.contains(place) {
        text += "-\(old[place])\n"
        place += 1
      } else if inserted.contains(newPlace) {
        text += "+\(new[newPlace])\n"
        newPlace += 1
      } else {
        text += " \(old[place])\n"
        (place, newPlace) = (place + 1, newPlace + 1)
      }
    }
    return text
  }

  private static func lines(_ state: FileState) -> [String] {
    switch state {
    case .absent: return []
    case .file(let octets, _):
      guard let text = String(validating: octets, as: UTF8.self) else { return ["(\(octets.count) octets, not text)"] }
      guard !text.isEmpty else { return [] }
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      return text.hasSuffix("\n") ? lines.dropLast() : lines.dropLast() + ["\(lines.last!) (no newline at the end)"]
    case .link(let target): return ["(symbolic link to \(target))"]
    case .folder: return ["(folder)"]
    case .other: return ["(not a regular file)"]
    }
  }

  /// Mode and owner, if they differ between the states or are unusual.
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
