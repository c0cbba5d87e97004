// Operation.swift -- the `[control]`, `[web]` and `[log]` sections.

import Ciphers
import DNSWire
import Logging
import Telemetry

extension Configuration {
  /// The control socket.
  public struct Control: Hashable, Sendable {
    /// Unix socket for `httpdnsd top` and other commands; empty switches it off. Has mode 0660.
    public var socket: String? = "/run/httpdnsd/control.sock"
    /// The folder of the default socket; `$RUNTIME_DIRECTORY` replaces it.
    static let usualFolder = "/run/httpdnsd/"
    /// Group that may use the socket, besides root and the daemon's own user and group.
    public var group: String?
    /// Whether the users of `group`, and not only root, may watch queries (`httpdnsd tail`).
    public var tail = false
  }

  /// Metrics and health over HTTP.
  public struct Web: Hashable, Sendable {
    /// Address of `/metrics`, `/healthz` and `/readyz`; empty means none.
    public var address: Endpoint?
    /// Token with which programs report addresses by `POST /report`.
    public var reportToken: Secret?
    /// Whether `/dashboard` is served.
    public var dashboard = false
    /// Names under which a TLS proxy serves the dashboard.
    public var hosts: [DomainName] = []
  }

  /// Log level, format and query log.
  public struct Log: Hashable, Sendable {
    /// Lowest level that is logged.
    public var level = Logger.Level.info
    /// Form of the lines; `json` is one object for each.
    public var format = LogFormat.text
    /// Whether each query is logged, with name and client.
    public var queries = false
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
    reader.read("dashboard", &dashboard, .boolean)
    reader.read("hosts", &hosts, .distinctList(of: .hostName))
    if dashboard, address == nil { reader.warn("dashboard", "unused: `web.address` is empty") }
    if reportToken != nil, address == nil { reader.warn("report_token_file", "unused: `web.address` is empty") }
    if let address, !address.address.isLoopback {
      let figures = dashboard ? "the metrics and the dashboard's figures" : "the metrics"
      reader.warn("address", "\(address) lets the network read \(figures), without a password and without TLS")
    }
  }
}

extension Form where Result == DomainName {
  /// A name as browsers send it in the Host field, without the port.
  fileprivate static var hostName: Form {
    Form("a name such as \"dns.example.com\", without scheme, port and path") { value in
      guard let line = value.line, line.utf8.allSatisfy({ isLetterOrDigit($0) || "-_.".utf8.contains($0) }) else {
        return nil
      }
      let name = DomainName(text: line)?.lowercased
      // An address and localhost need no name.
      return name.flatMap {
        $0.isRoot || IPAddress(text: line) != nil || line.lowercased().hasSuffix("localhost") ? nil : $0
      }
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
