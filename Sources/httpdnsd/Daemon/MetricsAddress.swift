// MetricsAddress.swift -- opens `web.address`; the daemon does not start if it cannot be bound.

import Configuration
import DNSWire
import EventLoop
import Forwarder
import Frontend
import Glibc
import HTTPServer
import Listener
import Logging
import Upstreams
import Web

enum MetricsAddress {
  /// The listening server for `[web]`; nil if it is switched off.
  ///
  /// - Throws: `StartError` if the address cannot be bound.
  static func open(
    _ settings: Configuration.Web, _ forwarder: Forwarder, _ logger: Logger
  ) throws(StartError) -> WebServer? {
    guard let address = settings.address.map({ SocketAddress($0) }) else { return nil }
    do throws(HTTPServerError) {
      let sources = WebSources(version: ProgramVersion.text, forwarder)
      let server = try WebServer(on: forwarder.loop, address, sources)
      server.onFailure = AcceptFailures.log(of: "web.address", forwarder.occasional)
      logger.info("metrics at http://\(server.address)/metrics")
      return server
    } catch {
      guard case .cannotListen(_, _, let number) = error else { throw .other("web.address: \(error)") }
      let reason = RunCommand.explain(ListenError(address: address, transport: "tcp", code: number))
      throw .other("web.address: \(reason)")
    }
  }
}
