// StandardErrorLog.swift -- one line an event on stderr: what the journal and a container's log expect.

import Glibc
import Logging

/// A log handler that writes `LEVEL message key=value …`, one line an event.
///
/// systemd takes the level from the `<N>` prefix (sd-daemon(3)) where it collects the log, and adds the time itself.
public struct StandardErrorLog: LogHandler {
  /// Values that go with every event.
  public var metadata: Logger.Metadata = [:]
  /// Events below it are left out: the threshold that all share, unless this one has been given a level of its own.
  public var logLevel: Logger.Level {
    get { ownLevel ?? threshold.level }
    set { ownLevel = newValue }
  }
  private var ownLevel: Logger.Level?
  private let threshold: LogThreshold
  private let isJournal: Bool

  /// A handler that leaves out events below a threshold, which may change.
  public init(_ threshold: LogThreshold) {
    let stream = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    self.init(threshold, isJournal: StandardErrorLog.isJournal(stream, descriptor: 2))
  }

  init(_ threshold: LogThreshold, isJournal: Bool) {
    self.threshold = threshold
    self.isJournal = isJournal
  }

  /// Whether a descriptor is the one that systemd connected to the journal: the variable names its device and inode, and
  /// is inherited by what was redirected since (systemd.exec(5)).
  static func isJournal(_ stream: String?, descriptor: Int32) -> Bool {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
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
    if let error = event.error { line += " error=\(clean("\(error)"))" }
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
