// Plan.swift -- what a method will change; complete before the first change.

/// A change of one path from one state to another.
public struct Change: Hashable, Sendable {
  /// The path inside the root.
  public let path: String
  /// The current state, which undo restores.
  public let before: FileState
  public let after: FileState
  /// How the change is made, and whether changes by others are conflicts.
  public let kind: Kind

  /// How a change is made, and who may modify the result.
  public enum Kind: String, Sendable {
    /// The file is replaced as a whole.
    case replace
    /// The file is a mount point and is overwritten in place.
    case overwrite
    /// The file is our own as long as its first line says so; hooks may rewrite it at any time.
    case ours
  }

  /// Whether a state of a file of ours is one that hooks have written, also those of another version.
  func isRewritten(_ current: FileState) -> Bool {
    guard kind == .ours, let text = current.text else { return false }
    return ResolverText.isOurs(text.prefix { $0 != "\n" })
  }

  /// The text with the first line that the file got when setup was applied, which hooks of that version look for.
  func withFirstLine(_ text: String) -> String {
    guard let line = after.text?.prefix(while: { $0 != "\n" }) else { return text }
    return String(line + text.drop { $0 != "\n" })
  }

  /// Whether this only creates a folder for another change.
  public var isFolder: Bool {
    if case .folder = after { true } else { false }
  }

  init(_ path: String, from before: FileState, to after: FileState, _ kind: Kind = .replace) {
    (self.path, self.before, self.after, self.kind) = (path, before, after, kind)
  }
}

/// Everything that a method will do on one machine.
public struct Plan: Hashable, Sendable {
  /// The method that the plan carries out.
  public let method: SetupMethod
  /// The address that the machine's programs will ask.
  public let nameserver: Nameserver
  /// The path of the installed httpdnsd, which hooks run.
  public let program: String
  /// The changes in the order in which they will be made.
  public internal(set) var changes: [Change] = []
  /// The commands to run after the changes.
  public internal(set) var commands: [SystemCommand] = []
  /// Other effects, as sentences.
  public internal(set) var notes: [String] = []
  /// Reasons against the plan; `--apply` refuses if there is one.
  public internal(set) var doubts: [String] = []

  init(_ method: SetupMethod, _ nameserver: Nameserver, program: String) {
    (self.method, self.nameserver, self.program) = (method, nameserver, program)
  }

  /// Adds a change of a path from its current state, and the folders that it needs.
  mutating func add(
    _ path: String, _ after: FileState, _ kind: Change.Kind = .replace, in root: Root
  ) throws(SetupError) {
    try addFolder(Root.parent(of: path), in: root)
    let before = try root.state(of: path)
    switch before {
    case .folder, .other: throw .refused("\(path) is not a regular file")
    default: changes.append(Change(path, from: before, to: after, kind))
    }
  }

  private mutating func addFolder(_ path: String, in root: Root) throws(SetupError) {
    // The lock creates the state folder.
    guard !path.isEmpty, path != SetupPaths.state, !root.exists(path), !changes.contains(where: { $0.path == path })
    else { return }
    try addFolder(Root.parent(of: path), in: root)
    changes.append(Change(path, from: .absent, to: .folder(mode: 0o755)))
  }

  /// The changes, commands and notes as human-readable text.
  public var text: String {
    var parts = changes.map(\.difference)
    if !commands.isEmpty { parts.append("then:\n" + commands.map { "  \($0)\n" }.joined()) }
    parts += notes.map { "note: \($0)\n" }
    return parts.joined(separator: "\n")
  }
}
