// Endpoint.swift -- addresses as command-line arguments.

import ArgumentParser
import EventLoop

/// An address and a port. Names are not accepted, because the simulator does not resolve names.
extension SocketAddress: ExpressibleByArgument {
  public init?(argument: String) { self.init(text: argument) }
}

/// An additional address or Unix socket that serves the control paths.
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
