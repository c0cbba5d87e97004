// ServiceAddress.swift -- an address that the scheduling call names, with or without a port.

import DNSWire
import EventLoop

/// `192.0.2.11`, `192.0.2.11:8053`, `2001:db8::11` or `[2001:db8::11]:8053`.
struct ServiceAddress: Equatable, Sendable, CustomStringConvertible {
  let address: IPAddress
  /// nil for the scheme's own.
  let port: UInt16?

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

  private init(address: IPAddress, port: UInt16?) {
    self.address = address
    self.port = port
  }

  var description: String {
    guard let port else { return address.description }
    return SocketAddress(octets: address.octets, port: port)!.description
  }
}
