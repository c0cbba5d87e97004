// AppleProfile.swift -- a configuration profile that makes an iPhone, iPad or Mac use the encrypted listeners.
//
// Apple's documentation: Device Management, com.apple.dnsSettings.managed. Nothing in it has to be escaped: a name, a path, a
// label and a token consist of letters, digits and signs that XML does not know.

import Ciphers
import DNSWire

/// The text of a `.mobileconfig` file, unsigned.
struct AppleProfile {
  /// What the device connects to.
  enum Server {
    /// DNS over HTTPS, by its URL.
    case https(url: String)
    /// DNS over TLS, by the name that is sent as SNI. The device connects to port 853.
    case tls(name: String)
  }

  let server: Server
  /// The server's name, which the device shows.
  let name: String
  /// The label of the token, which the device shows; nil without one.
  let label: String?
  /// The addresses of the server; without any, the device resolves the name by the network's resolver.
  let addresses: [IPAddress]

  /// The file. Its identifiers are the same each time, so that a device replaces an older profile.
  var text: String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
      <key>PayloadContent</key>
      <array>
        <dict>
          <key>DNSSettings</key>
          <dict>
            <key>DNSProtocol</key>
            <string>\(word)</string>
    \(addressLines)\(serverLines)
          </dict>
    \(payload(of: "com.apple.dnsSettings.managed", indent: "      "))
        </dict>
      </array>
    \(payload(of: "Configuration", indent: "  "))
    </dict>
    </plist>

    """
  }

  private var word: String {
    switch server {
    case .https: "HTTPS"
    case .tls: "TLS"
    }
  }

  private var serverLines: String {
    let indent = String(repeating: " ", count: 8)
    return switch server {
    case .https(let url): "\(indent)<key>ServerURL</key>\n\(indent)<string>\(url)</string>"
    case .tls(let name): "\(indent)<key>ServerName</key>\n\(indent)<string>\(name)</string>"
    }
  }

  private var addressLines: String {
    guard !addresses.isEmpty else { return "" }
    let indent = String(repeating: " ", count: 8)
    let items = addresses.map { "\(indent)  <string>\($0)</string>\n" }.joined()
    return "\(indent)<key>ServerAddresses</key>\n\(indent)<array>\n\(items)\(indent)</array>\n"
  }

  /// What every payload has.
  private func payload(of type: String, indent: String) -> String {
    let shown = name + (label.map { " (\($0))" } ?? "")
    return [
      ("PayloadDisplayName", "string", shown), ("PayloadIdentifier", "string", "httpdnsd.\(uuid(type))"),
      ("PayloadType", "string", type), ("PayloadUUID", "string", uuid(type)), ("PayloadVersion", "integer", "1"),
    ].map { "\(indent)<key>\($0.0)</key>\n\(indent)<\($0.1)>\($0.2)</\($0.1)>" }.joined(separator: "\n")
  }

  /// A UUID that follows from name, protocol and label (RFC 9562 section 5.8).
  private func uuid(_ type: String) -> String {
    var octets = Array(Digest.sha256(Array("\(name)\n\(word)\n\(label ?? "")\n\(type)".utf8)).prefix(16))
    octets[6] = octets[6] & 0x0F | 0x80
    octets[8] = octets[8] & 0x3F | 0x80
    let digits = Hexadecimal.encode(octets).uppercased()
    var rest = Substring(digits)
    return [8, 4, 4, 4, 12].map { count in
      defer { rest = rest.dropFirst(count) }
      return String(rest.prefix(count))
    }.joined(separator: "-")
  }
}
