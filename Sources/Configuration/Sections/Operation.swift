// Operation.swift -- the `[control]`, `[web]` and `[log]` sections.

import Ciphers
import DNSWire

extension Configuration {
  /// The control socket.
  public struct Control: Hashable, Sendable {
    /// Path of the socket, which has mode 0660; nil means none.
    public var socket: String? = "/run/httpdnsd/control.sock"
    /// The folder of the default socket; `$RUNTIME_DIRECTORY` replaces it.
    static let usualFolder = "/run/httpdnsd/"
    /// Group of the socket, by name in /etc/group or by number; nil means the daemon's own.
    public var group: String?
    /// Whether every user of the socket may watch queries, and not only root.
    public var tail = false
  }

  /// Metrics and health over HTTP.
  public struct Web: Hashable, Sendable {
    /// The address to serve them on; nil disables them.
    public var address: Endpoint?
    /// The token with which programs may report addresses there; nil disables reports.
    public var reportToken: Secret?
  }

  /// Log level, format and query log.
  public struct Log: Hashable, Sendable {
    /// The lowest level that is logged.
    public var level = LogLevel.info
    /// The format of a message.
    public var format = LogFormat.text
    /// Whether each query is logged.
    public var queries = false
  }

  /// The level of a message; the raw values are those of swift-log.
  public enum LogLevel: String, CaseIterable, Hashable, Sendable {
    case trace, debug, info, notice, warning, error, critical
  }

  /// The format of a message.
  public enum LogFormat: String, CaseIterable, Hashable, Sendable {
    /// One line of text.
    case text
    /// One JSON object per line.
    case json
  }
}

extension Configuration.Control {
  mutating func read(from reader: TableReader) {
    reader.read("socket", &socket, .optional(.absolutePath))
    reader.read("group", &group, .optional(.identifier))
    reader.read("tail", &tail, .boolean)
  }

  /// Moves a socket in the default folder to systemd's runtime directory, if that is another one.
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
    reportToken = reader.secret("report_token", .reportToken)
    reader.warnOfInlineSecrets()
    if reportToken != nil, address == nil { reader.warn("report_token_file", "unused: `web.address` is empty") }
    if let address, !address.address.isLoopback {
      reader.warn("address", "\(address) lets the network read the metrics, without a password and without TLS")
    }
  }
}

extension SecretForm {
  /// A token for the Authorization field (RFC 6750 section 2.1), too long to be guessed.
  fileprivate static var reportToken: SecretForm {
    SecretForm("at least 16 letters, digits or -._~+/=") { octets in
      octets.count >= 16
        && octets.allSatisfy { octet in
          let letter = octet | 0x20
          return (97...122).contains(letter) && octet >= 65 || (48...57).contains(octet)
            || "-._~+/=".utf8.contains(octet)
        }
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
