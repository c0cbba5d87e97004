// StandardErrorLog.swift -- one line an event on stderr: what the journal and a container's log expect.

import Glibc
import Logging

/// A log handler that writes `LEVEL message key=value …`, one line an event.
///
/// systemd takes the level from the `<N>` prefix (sd-daemon(3)) where it collects the log, and adds the time itself.
public struct StandardErrorLog: LogHandler {
  /// Values that go with every event.
  public var metadata: Logger.Metadata = [:]
  /// Events below it are left out.
  public var logLevel: Logger.Level
  private let isJournal: Bool

  /// A handler that leaves out events below `level`.
  public init(level: Logger.Level) {
    logLevel = level
    isJournal = getenv("JOURNAL_STREAM") != nil
  }

  /// A value of the metadata by its key.
  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Writes one event.
  public func log(event: LogEvent) {
    var line = isJournal ? "<\(priority(event.level))>" : "\(timestamp()) \(event.level.rawValue.uppercased()) "
    line += clean("\(event.message)")
    let values = metadata.merging(event.metadata ?? [:]) { $1 }
    for (key, value) in values.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(clean("\(value)"))" }
    line += "\n"
    line.withUTF8 { octets in _ = write(2, octets.baseAddress, octets.count) }
  }

  /// A line break or a control character in a value would make two events of one.
  private func clean(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }))
  }

  private func priority(_ level: Logger.Level) -> Int {
    switch level {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }

  private func timestamp() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 32)
    let length = strftime(&text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts)
    return String(decoding: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
