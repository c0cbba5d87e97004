// Endpoint.swift -- an address of the command line.

import ArgumentParser
import EventLoop

/// An address and a port; names are not taken, since nothing here may look one up.
struct Endpoint: ExpressibleByArgument {
  let address: SocketAddress

  init?(argument: String) {
    guard let address = SocketAddress(text: argument) else { return nil }
    self.address = address
  }
}

/// Where the control paths are served besides the service's own addresses.
enum ControlEndpoint: ExpressibleByArgument {
  case address(SocketAddress)
  case unixPath(String)

  init?(argument: String) {
    if argument.hasPrefix("/") {
      self = .unixPath(argument)
    } else if let address = SocketAddress(text: argument) {
      self = .address(address)
    } else {
      return nil
    }
  }
}
