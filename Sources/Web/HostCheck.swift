// HostCheck.swift -- whether a request was meant for this machine, by its Host field.
//
// A web page in a browser on this machine may lead a name of its own to 127.0.0.1 (DNS rebinding) and would then read what
// only this machine is meant to read. Its requests carry that name. Where the address is not a loopback one, the network
// may read the same without such a detour, and machines have more names there than they know themselves.

import DNSWire
import EventLoop
import Glibc

/// Which Host fields are answered.
struct HostCheck {
  /// Names of this machine beside `localhost`, in lower case; nil where every name is answered.
  private let names: Set<String>?

  /// The check of a server that listens there.
  init(for address: SocketAddress) {
    self.init(for: address, machine: HostCheck.machineName)
  }

  init(for address: SocketAddress, machine: String) {
    guard IPAddress(octets: address.octets)?.isLoopback ?? false else {
      names = nil
      return
    }
    let full = machine.lowercased()
    names = [full, String(full.prefix { $0 != "." })]
  }

  /// Whether a request with that field is answered. A browser always sends one.
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

  private static var machineName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
