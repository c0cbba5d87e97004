// HostCheck.swift -- which requests are meant for this server: by their Host field, against DNS rebinding, and by Origin.
//
// A web page in a browser on this machine may point its own name to 127.0.0.1 (DNS rebinding) and could then read what
// only this machine may read. Its requests carry that name in the Host field. On an address other than loopback, the
// network can read the figures without rebinding, and machines have more names there than they know; every name is accepted
// then, but not for the dashboard, whose page acts.

import DNSWire
import EventLoop
import Files

/// The Host and Origin fields that the server accepts.
package struct HostCheck {
  /// Names of this machine besides `localhost`, in lower case.
  private let machine: Set<String>
  /// Whether the server listens on a loopback address.
  private let isLoopback: Bool
  /// `web.hosts`: names under which a TLS proxy serves the dashboard, in lower case and without the last dot.
  private var proxied: Set<String> = []

  /// `address` is the one that the server listens on.
  package init(for address: SocketAddress) { self.init(for: address, machine: hostName) }

  init(for address: SocketAddress, machine: String) {
    isLoopback = IPAddress(octets: address.octets)?.isLoopback ?? false
    let full = machine.lowercased()
    self.machine = [full, String(full.prefix { $0 != "." })]
  }

  /// From now on accepts these names for the dashboard, and no others of proxies.
  package mutating func use(proxied names: [DomainName]) {
    proxied = Set(names.map { HostCheck.withoutLastDot($0.text.lowercased()) })
  }

  /// Returns whether a request for metrics and the like is accepted. Browsers always send the field, so a missing one passes.
  package func admits(_ field: String?) -> Bool {
    guard isLoopback, let field else { return true }
    return isThisMachine(HostCheck.withoutPort(field.lowercased()))
  }

  /// Returns whether a request below `/dashboard` is accepted: its field is an address, a name of this machine, or one of
  /// `web.hosts`.
  package func admitsToDashboard(_ field: String) -> Bool {
    let host = HostCheck.withoutPort(field.lowercased())
    return isThisMachine(host) || proxied.contains(HostCheck.withoutLastDot(host))
  }

  /// Returns whether a page of this origin may act: one that this server has served over loopback, which tunnels and
  /// containers end at as well, or over a proxy's TLS. So no token crosses a network in clear.
  ///
  /// - Parameter field: the Host field of the same request.
  package func admits(origin: String, of field: String) -> Bool {
    let (origin, field) = (origin.lowercased(), field.lowercased())
    let host = HostCheck.withoutPort(field)
    return HostCheck.isLoopback(host) && origin == "http://\(field)"
      || proxied.contains(HostCheck.withoutLastDot(host)) && origin == "https://\(field)"
  }

  private func isThisMachine(_ host: String) -> Bool {
    if HostCheck.address(host) != nil { return true }
    let name = HostCheck.withoutLastDot(host)
    return HostCheck.isLocalhost(name) || !name.isEmpty && machine.contains(name)
  }

  private static func isLoopback(_ host: String) -> Bool {
    address(host)?.isLoopback ?? isLocalhost(withoutLastDot(host))
  }

  private static func isLocalhost(_ name: String) -> Bool { name == "localhost" || name.hasSuffix(".localhost") }

  private static func address(_ host: String) -> IPAddress? {
    SocketAddress(text: "\(host):1").flatMap { IPAddress(octets: $0.octets) }
  }

  private static func withoutLastDot(_ name: String) -> String { name.hasSuffix(".") ? String(name.dropLast()) : name }

  private static func withoutPort(_ field: String) -> String {
    guard let colon = field.lastIndex(of: ":"), field[field.index(after: colon)...].allSatisfy({ "0"..."9" ~= $0 })
    else {
      return field
    }
    return String(field[..<colon])
  }
}
