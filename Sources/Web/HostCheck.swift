// HostCheck.swift -- checks the Host field, against DNS rebinding.
//
// A web page in a browser on this machine may point its own name to 127.0.0.1 (DNS rebinding) and could then read what
// only this machine may read. Its requests carry that name in the Host field. On an address other than loopback, the
// network can read the same without rebinding, and machines have more names there than they know; every name is
// accepted.

import DNSWire
import EventLoop
import Files

/// The Host fields that the server accepts.
struct HostCheck {
  /// Names of this machine besides `localhost`, in lower case; nil to accept every name.
  private let names: Set<String>?

  /// `address` is the one that the server listens on.
  init(for address: SocketAddress) {
    self.init(for: address, machine: hostName)
  }

  init(for address: SocketAddress, machine: String) {
    guard IPAddress(octets: address.octets)?.isLoopback ?? false else {
      names = nil
      return
    }
    let full = machine.lowercased()
    names = [full, String(full.prefix { $0 != "." })]
  }

  /// Returns whether a request with this field is accepted. Browsers always send the field, so a missing one passes.
  func admits(_ field: String?) -> Bool {
    guard let names, let field else { return true }
    let host = HostCheck.withoutPort(field.lowercased())
    if SocketAddress(text: "\(host):1") != nil { return true }
    let name = host.hasSuffix(".") ? String(host.dropLast()) : host
    return name == "localhost" || name.hasSuffix(".localhost") || !name.isEmpty && names.contains(name)
  }

  private static func withoutPort(_ field: String) -> String {
    guard let colon = field.lastIndex(of: ":"), !field.hasSuffix("]") else { return field }
    return String(field[..<colon])
  }
}
