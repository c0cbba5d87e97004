// Plan.swift -- what a method will change, decided before anything is.

/// One path that is brought from one state into another.
public struct Change: Hashable, Sendable {
  /// The path inside the root.
  public let path: String
  /// What is there now, and what undo puts back.
  public let before: FileState
  /// What will be there.
  public let after: FileState
  /// How the two are told apart from somebody else's doing.
  public let kind: Kind

  /// How a change is made, and whose the result is.
  public enum Kind: String, Sendable {
    /// The file is replaced as a whole.
    case replace
    /// Something is mounted on the file: it is overwritten.
    case overwrite
    /// Our own file, whose content may be rewritten at any time.
    case ours
  }

  /// Whether it is only a folder for another change.
  public var isFolder: Bool {
    if case .folder = after { true } else { false }
  }

  init(_ path: String, from before: FileState, to after: FileState, _ kind: Kind = .replace) {
    (self.path, self.before, self.after, self.kind) = (path, before, after, kind)
  }
}

/// Everything that a method does on one machine.
public struct Plan: Hashable, Sendable {
  /// The method.
  public let method: SetupMethod
  /// Where the machine's programs will ask.
  public let nameserver: Nameserver
  /// The installed program, for hooks.
  public let program: String
  /// In the order in which they are made.
  public internal(set) var changes: [Change] = []
  /// What is run afterwards.
  public internal(set) var commands: [SystemCommand] = []
  /// What else happens, in sentences.
  public internal(set) var notes: [String] = []
  /// Why it is perhaps not wise; `--apply` refuses because of one.
  public internal(set) var doubts: [String] = []

  init(_ method: SetupMethod, _ nameserver: Nameserver, program: String) {
    (self.method, self.nameserver, self.program) = (method, nameserver, program)
  }

  /// Adds a change of a path from what is there now, with the folders that it needs.
  mutating func add(
    _ path: String, _ after: FileState, _ kind: Change.Kind = .replace, in root: Root
  ) throws(SetupError) {
    try addFolder(Root.parent(of: path), in: root)
    let before = try root.state(of: path)
    switch before {
    case .folder, .other: throw .refused("\(path) is no file")
    default: changes.append(Change(path, from: before, to: after, kind))
    }
  }

  private mutating func addFolder(_ path: String, in root: Root) throws(SetupError) {
    // The folder of state comes with the lock.
    guard !path.isEmpty, path != Place.state, !root.exists(path), !changes.contains(where: { $0.path == path }) else {
      return
    }
    try addFolder(Root.parent(of: path), in: root)
    changes.append(Change(path, from: .absent, to: .folder(mode: 0o755)))
  }

  /// What will be changed and run, for a person to read.
  public var text: String {
    var parts = changes.map(\.difference)
    if !commands.isEmpty { parts.append("then:\n" + commands.map { "  \($0)\n" }.joined()) }
    parts += notes.map { "note: \($0)\n" }
    return parts.joined(separator: "\n")
  }
}
