// ControlSocket.swift -- opens the daemon's control socket, or logs why it cannot: queries are answered either way.

import Configuration
import Control
import Forwarder
import Glibc
import HTTPServer
import Logging

enum ControlSocket {
  /// Returns the listening server for `[control]`; nil if it is switched off or cannot be opened. Releasing the server
  /// removes the path.
  ///
  static func open(
    _ settings: Configuration.Control, _ forwarder: Forwarder, _ actions: ForwarderActions, _ tails: TailService,
    _ logger: Logger
  ) -> ControlServer? {
    guard let path = settings.socket else { return nil }
    do throws(HTTPServerError) {
      let server = ControlServer(on: forwarder.loop, actions, tails)
      server.onFailure = AcceptFailures.log(of: "the control socket", forwarder.occasional)
      try server.listen(path: path)
      if let problem = problem(settings) { logger.warning("\(problem)") }
      if let name = settings.group { give(path, to: name, logger) }
      logger.debug("control socket \(path)")
      return server
    } catch {
      let commands = "httpdnsd flush, providers, top and similar commands"
      logger.warning("no control socket, so \(commands) do not work: \(error)\(remedy(error))")
      return nil
    }
  }

  /// A setting that cannot take effect, in one line; nil if all settings can.
  static func problem(_ settings: Configuration.Control) -> String? {
    guard let path = settings.socket, let name = settings.group, SocketGroup(name) == nil else { return nil }
    return "control.group: no group \(name) in /etc/group; \(path) keeps its group"
  }

  private static func give(_ path: String, to name: String, _ logger: Logger) {
    guard let number = SocketGroup(name)?.take(path) else { return }
    let help = "this needs root, membership of the group, or a file system with access lists"
    logger.warning("control.group: cannot give \(path) to \(name): \(String(cString: strerror(number))); \(help)")
  }

  private static func remedy(_ error: HTTPServerError) -> String {
    if case .pathOccupied = error { return "; move it away, or set control.socket to another path" }
    guard case .cannotListen(_, _, let number) = error else { return "" }
    switch number {
    case ENOENT: return "; create its folder (RuntimeDirectory= in the unit), or set control.socket"
    case EACCES, EROFS, EPERM: return "; set control.socket to a path that this user may write, or to \"\""
    default: return ""
    }
  }
}
