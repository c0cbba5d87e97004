// Operation.swift -- the `[control]`, `[web]` and `[log]` sections.

import DNSWire

extension Configuration {
  /// The control socket.
  public struct Control: Hashable, Sendable {
    /// Path of the socket, mode 0660; nil means none.
    public var socket: String? = "/run/httpdnsd/control.sock"
    /// The folder of the default socket: `$RUNTIME_DIRECTORY` takes its place.
    static let usualFolder = "/run/httpdnsd/"
    /// Group of the socket, by its name in /etc/group or its number; nil leaves it as it is.
    public var group: String?
  }

  /// Metrics and health over HTTP.
  public struct Web: Hashable, Sendable {
    /// Where it is served; nil means not at all.
    public var address: Endpoint?
  }

  /// What is logged.
  public struct Log: Hashable, Sendable {
    /// Less important messages are left out.
    public var level = LogLevel.info
    /// How a message is written.
    public var format = LogFormat.text
    /// Whether each query is logged.
    public var queries = false
  }

  /// How important a message is; the raw values are those of swift-log.
  public enum LogLevel: String, CaseIterable, Hashable, Sendable {
    case trace, debug, info, notice, warning, error, critical
  }

  /// How a message is written.
  public enum LogFormat: String, CaseIterable, Hashable, Sendable {
    /// One line of words.
    case text
    /// One JSON object a line.
    case json
  }
}

extension Configuration.Control {
  mutating func read(from reader: TableReader) {
    reader.read("socket", &socket, .optional(.absolutePath))
    reader.read("group", &group, .optional(.identifier))
  }

  /// What stands in the usual folder is in systemd's instead, where that is another one.
  mutating func move(to directories: String?) {
    guard let directory = directories?.split(separator: ":").first, let socket,
      socket.hasPrefix(Configuration.Control.usualFolder)
    else { return }
    self.socket = "\(directory)/\(socket.dropFirst(Configuration.Control.usualFolder.count))"
  }
}

extension Configuration.Web {
  mutating func read(from reader: TableReader) {
    reader.read("address", &address, .optional(.listenEndpoint(port: 9353)))
    if let address, !address.address.isLoopback {
      reader.warn("address", "\(address) lets the network read the metrics, without a password and without TLS")
    }
  }
}

extension Configuration.Log {
  mutating func read(from reader: TableReader) {
    reader.read("level", &level, .choice)
    reader.read("format", &format, .choice)
    reader.read("queries", &queries, .boolean)
  }
}
