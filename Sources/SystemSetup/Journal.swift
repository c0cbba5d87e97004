// Journal.swift -- what undo needs; written and synchronized before the first change.
//
// It holds the state of each path before and after. Undo compares these with the current state to find out how far a
// killed process got, so that nothing has to be recorded on the way.

/// The record of an applied setup, with all that undo needs.
public struct Journal: Hashable, Sendable {
  /// The method that was applied.
  public let method: SetupMethod
  /// The address that the machine's programs ask.
  public let nameserver: Nameserver
  /// The changes in the order in which they were made; undo goes backwards.
  public let changes: [Change]

  init(_ plan: Plan) { (method, nameserver, changes) = (plan.method, plan.nameserver, plan.changes) }

  /// The commands to run after all changes are undone.
  public var commandsAfterUndo: [SystemCommand] {
    switch method {
    case .resolved, .resolvconf: [SystemCommand("systemctl", "daemon-reload")]
    case .networkManager: [SystemCommand("nmcli", "general", "reload")]
    case .file: []
    }
  }

  /// The commands to run after what setup has made was removed without a journal; some fail on each machine.
  public static let commandsAfterLoss = [
    SystemCommand("sh", "-c", "systemctl daemon-reload; resolvconf -d \(SetupPaths.record) 2> /dev/null; true"),
    SystemCommand(
      "sh", "-c", "systemctl try-reload-or-restart systemd-resolved; nmcli general reload 2> /dev/null; true"),
  ]

  private static let signature = "httpdnsd-setup 1"

  /// The encoded journal: text lines, some followed by as many octets as they announce.
  var octets: [UInt8] {
    var octets = Array("\(Journal.signature)\n\(method.rawValue) \(nameserver.host) \(nameserver.port)\n".utf8)
    for change in changes {
      octets += Array("change \(change.kind.rawValue) \(change.path)\n".utf8)
      for state in [change.before, change.after] { octets += Journal.octets(state) }
    }
    return octets + Array("end\n".utf8)
  }

  private static func octets(_ state: FileState) -> [UInt8] {
    switch state {
    case .absent: return Array("absent\n".utf8)
    case .folder(let mode): return Array("folder \(mode)\n".utf8)
    case .link(let target): return Array("link \(target.utf8.count)\n\(target)\n".utf8)
    case .file(let content, let attributes):
      let time = attributes.modified.map { "\($0.seconds) \($0.nanoseconds)" } ?? "- -"
      let owner = "\(attributes.user) \(attributes.group)"
      return Array("file \(attributes.mode) \(owner) \(time) \(content.count)\n".utf8) + content + [newline]
    case .other: preconditionFailure("a device is never changed")
    }
  }

  /// Decodes a journal; nil if it is incomplete or malformed.
  init?(octets: [UInt8]) {
    var reader = Reader(rest: octets[...])
    guard reader.line() == Journal.signature, let head = reader.line()?.split(separator: " "), head.count == 3,
      let method = SetupMethod(rawValue: String(head[0])), let port = UInt16(head[2])
    else { return nil }
    var changes: [Change] = []
    while let line = reader.line(), line != "end" {
      let fields = line.split(separator: " ", maxSplits: 2)
      guard fields.count == 3, fields[0] == "change", let kind = Change.Kind(rawValue: String(fields[1])),
        let before = reader.state(), let after = reader.state()
      else { return nil }
      changes.append(Change(String(fields[2]), from: before, to: after, kind))
    }
    guard reader.isEnded, reader.rest.isEmpty else { return nil }
    self.method = method
    nameserver = Nameserver(host: String(head[1]), port: port)
    self.changes = changes
  }

  private struct Reader {
    var rest: ArraySlice<UInt8>
    /// Whether the last line was `end`.
    var isEnded = false

    mutating func line() -> String? {
      guard let end = rest.firstIndex(of: newline) else { return nil }
      defer { rest = rest[(end + 1)...] }
      let line = String(decoding: rest[..<end], as: UTF8.self)
      isEnded = line == "end"
      return line
    }

    mutating func state() -> FileState? {
      guard let fields = line()?.split(separator: " ").map(String.init) else { return nil }
      let numbers = fields.dropFirst().map { Int($0) }
      switch (fields.first, numbers.count) {
      case ("absent", 0): return .absent
      case ("folder", 1): return numbers[0].flatMap { UInt32(exactly: $0) }.map { .folder(mode: $0) }
      case ("link", 1): return content(numbers[0]).map { .link(to: String(decoding: $0, as: UTF8.self)) }
      case ("file", 6):
        let attributes = numbers.prefix(3).compactMap { $0.flatMap { UInt32(exactly: $0) } }
        guard attributes.count == 3, let content = content(numbers[5]) else { return nil }
        let time = numbers[3].flatMap { seconds in numbers[4].map { FileTime(seconds: seconds, nanoseconds: $0) } }
        return .file(
          content, FileAttributes(mode: attributes[0], user: attributes[1], group: attributes[2], modified: time))
      default: return nil
      }
    }

    private mutating func content(_ count: Int?) -> [UInt8]? {
      guard let count, count >= 0, count < rest.count, rest[rest.startIndex + count] == newline else { return nil }
      defer { rest = rest.dropFirst(count + 1) }
      return Array(rest.prefix(count))
    }
  }
}

private let newline = UInt8(ascii: "\n")
