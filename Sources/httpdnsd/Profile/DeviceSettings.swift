// DeviceSettings.swift -- what a device has to be told so that it uses the encrypted listeners.

import Configuration
import DNSWire

/// The server's name, address and services as a client needs them, with one token or none.
struct DeviceSettings {
  /// Why there is nothing to tell a device.
  enum Fault: Error, CustomStringConvertible {
    case noListener
    case noName

    /// The key, and what to do.
    var description: String {
      switch self {
      case .noListener: "encrypted: no listener: dot, doh and doh_plain are empty"
      case .noName: "encrypted.name: devices need a name; set it to the one in the certificate"
      }
    }
  }

  /// The label of the token; nil without one.
  let label: String?
  /// The server's name, without the final dot.
  let name: String
  private let encrypted: Configuration.Encrypted
  private let token: String?

  /// - Parameter token: a token of the list with its label.
  init(_ encrypted: Configuration.Encrypted, token: (label: String, text: String)?) throws(Fault) {
    guard encrypted.hasListeners else { throw .noListener }
    guard let name = encrypted.name else { throw .noName }
    self.name = Host.name(name).text
    self.encrypted = encrypted
    self.token = token?.text
    label = token?.label
  }

  /// The URL for DNS over HTTPS (RFC 8484); nil without such a listener. Behind a TLS proxy the port is the proxy's, and is
  /// taken for 443.
  var url: String? {
    guard let port = dohPort else { return nil }
    return "https://\(name)\(port == 443 ? "" : ":\(port)")\(path)"
  }

  /// The path of that URL.
  var path: String { encrypted.path + (token.map { "/\($0)" } ?? "") }

  /// The port of DNS over HTTPS; nil without such a listener.
  var dohPort: UInt16? {
    encrypted.doh.isEmpty ? (encrypted.dohPlain.isEmpty ? nil : 443) : port(of: encrypted.doh, usual: 443)
  }

  /// Whether only a TLS proxy serves DNS over HTTPS.
  var isBehindProxy: Bool { encrypted.doh.isEmpty && !encrypted.dohPlain.isEmpty }

  /// The name for DNS over TLS, which is sent as SNI; nil without such a listener.
  var tlsName: String? { encrypted.dot.isEmpty ? nil : token.map { "\($0).\(name)" } ?? name }

  /// The port of DNS over TLS; nil without such a listener.
  var dotPort: UInt16? { encrypted.dot.isEmpty ? nil : port(of: encrypted.dot, usual: 853) }

  /// The addresses under which devices reach the listeners, if the configuration says so.
  var published: [IPAddress] { encrypted.published }

  /// The published addresses, or else those of DNS over HTTPS that another machine can connect to.
  var dohAddresses: [IPAddress] { addresses(of: encrypted.doh) }

  /// The published addresses, or else those of DNS over TLS that another machine can connect to.
  var dotAddresses: [IPAddress] { addresses(of: encrypted.dot) }

  private func addresses(of listeners: [Endpoint]) -> [IPAddress] {
    guard published.isEmpty else { return published }
    var found: [IPAddress] = []
    for listener in listeners
    where !listener.isWildcard && !listener.address.isLoopback && listener.zone == nil
      && !found.contains(listener.address)
    {
      found.append(listener.address)
    }
    return found
  }

  /// The port that clients use by themselves, if it is served; else the first one.
  private func port(of listeners: [Endpoint], usual: UInt16) -> UInt16 {
    listeners.contains { $0.port == usual } ? usual : listeners[0].port
  }
}
