// ServiceAddress.swift -- an address in the reply of the scheduling call, with or without a port.

import DNSWire
import EventLoop

/// An address such as `192.0.2.11`, `192.0.2.11:8053`, `2001:db8::11` or `[2001:db8::11]:8053`.
struct ServiceAddress: Equatable, Sendable, CustomStringConvertible {
  let address: IPAddress
  /// Nil for the scheme's default.
  let port: UInt16?

  var description: String {
    guard let port else { return address.description }
    return SocketAddress(octets: address.octets, port: port)!.description
  }
}

extension ServiceAddress {
  init?(text: String) {
    if let address = IPAddress(text: text) {
      self.init(address: address, port: nil)
    } else if let endpoint = SocketAddress(text: text) {
      self.init(endpoint)
    } else {
      return nil
    }
  }

  init(_ endpoint: SocketAddress) {
    self.init(address: IPAddress(octets: endpoint.octets)!, port: endpoint.port)
  }
}
