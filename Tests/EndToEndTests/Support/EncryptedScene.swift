// EncryptedScene.swift -- a daemon with encrypted listeners before a simulator, and clients of it.

import Foundation
import TLSTestSupport
import Testing

/// The daemon, its files and its simulator.
struct EncryptedScene {
  let simulator: Simulator
  let daemon: Daemon
  let dot: Address
  let doh: Address
  let plain: Address
  private let settings: Settings

  /// The name in the certificate.
  static let name = "dns.test"
  static let allFields = "dot = [\"127.0.0.1:0\"]\ndoh = [\"127.0.0.1:0\"]\ndoh_plain = [\"127.0.0.1:0\"]"

  /// Starts a daemon that listens for DNS over TLS, over HTTPS and over HTTP, on loopback.
  ///
  /// - Parameters:
  ///   - keys: more keys of `[encrypted]`. A file that is not among them is one of `Certificates`; the limit of new
  ///     connections is off unless a test says so, as all clients are on one machine.
  ///   - change: other settings.
  init(
    in lab: Lab, _ keys: String = "name = \"dns.test\"", simulator: Simulator? = nil,
    sourceLocation: SourceLocation = #_sourceLocation, _ change: (inout Settings) -> Void = { _ in }
  ) throws {
    self.simulator = try simulator ?? lab.simulator()
    var settings = Settings(Settings.doh(self.simulator.http))
    change(&settings)
    _ = try lab.folder.write(Certificates.server, to: "server.pem")
    _ = try lab.folder.write(Certificates.serverKey, to: "server.key")
    _ = try lab.folder.write(Certificates.authority, to: "authority.pem")
    self.settings = settings
    daemon = try lab.daemon(
      EncryptedScene.text(settings, keys, in: lab.folder.path), sourceLocation: sourceLocation)
    let log = daemon.log
    dot = try EncryptedScene.address(of: "DoT", in: log)
    doh = try EncryptedScene.address(of: "DoH", in: log)
    plain = try EncryptedScene.address(of: "DoH without TLS", in: log)
  }

  /// Where the daemon listens for a service.
  private static func address(of service: String, in log: String) throws -> Address {
    for line in log.matches(of: /listening on (\S+), (DoT|DoH without TLS|DoH)\n/) where line.2 == service {
      if let address = Address(text: line.1) { return address }
    }
    throw Failure("no \(service): \(log)")
  }

  /// The configuration with other keys of `[encrypted]`.
  func text(_ keys: String, in lab: Lab) -> String { EncryptedScene.text(settings, keys, in: lab.folder.path) }

  private static func text(_ settings: Settings, _ keys: String, in folder: String) -> String {
    var table = "[encrypted]\n\(allFields)\n\(keys)\n"
    for (key, value) in [
      ("certificate_file", "\"\(folder)/server.pem\""), ("key_file", "\"\(folder)/server.key\""),
      ("new_per_second", "0"),
    ] where !keys.contains("\(key) = ") { table += "\(key) = \(value)\n" }
    var settings = settings
    settings.more += "\n" + table
    return settings.text.replacing("level = \"debug\"", with: "level = \"debug\"\nqueries = true")
  }

  /// A connection for DNS over TLS.
  func overTLS(
    _ offer: TLSOffer = TLSOffer(serverName: name), from host: String? = nil, prologue: [UInt8] = []
  ) throws -> ClientConnection { try ClientConnection(to: dot, from: host, prologue: prologue, offer) }

  /// A connection for DNS over HTTPS.
  func overHTTPS(_ version: HTTPVersion, from host: String? = nil) throws -> ClientConnection {
    try ClientConnection(to: doh, from: host, TLSOffer(serverName: EncryptedScene.name, protocols: [version.name]))
  }

  /// A connection for DNS over HTTP/1.1 without TLS.
  func overHTTP(from host: String? = nil) throws -> ClientConnection {
    try ClientConnection(to: plain, from: host, nil)
  }

  /// Asks over HTTPS, with a connection of its own.
  func fetch(_ ask: HTTPAsk, over version: HTTPVersion) throws -> HTTPReply {
    let connection = try overHTTPS(version)
    return version == .http1 ? try connection.fetch(ask) : try HTTP2Client(connection).fetch(ask)
  }
}
