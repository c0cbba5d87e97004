// ControlSocket.swift -- opens the daemon's control socket, or says why there is none: names are answered all the same.

import Configuration
import Control
import EventLoop
import Forwarder
import Glibc
import HTTPServer
import Logging

/// The control socket of a daemon.
enum ControlSocket {
  /// The server for `[control]`, which listens; nil where it is switched off or cannot be opened. The path goes with it.
  ///
  /// - Parameter file: the path of the file that the reloader reads.
  static func open(
    _ settings: Configuration.Control, _ forwarder: Forwarder, _ reloader: Reloader, file: String, _ logger: Logger
  ) -> ControlServer? {
    guard let path = settings.socket else { return nil }
    do throws(HTTPServerError) {
      let server = try ControlServer(on: forwarder.loop, ControlActions(forwarder, reloader, file: file))
      server.onFailure = AcceptFailures.log(of: "the control socket", forwarder.occasional)
      try server.listen(path: path)
      if let problem = problem(settings) { logger.warning("\(problem)") }
      if let name = settings.group { give(path, to: name, logger) }
      logger.debug("control socket \(path)")
      return server
    } catch {
      let meant = "httpdnsd flush, providers, top and the like"
      logger.warning("no control socket, so \(meant) will not work: \(error)\(remedy(error))")
      return nil
    }
  }

  /// What will not be as the settings say, in one line; nil where nothing speaks against it.
  static func problem(_ settings: Configuration.Control) -> String? {
    guard let path = settings.socket, let name = settings.group, SocketGroup(name) == nil else { return nil }
    return "control.group: there is no group \(name) in /etc/group; \(path) keeps its group"
  }

  private static func give(_ path: String, to name: String, _ logger: Logger) {
    guard let number = SocketGroup(name)?.take(path) else { return }
    let help = "root and members of the group can give it, others where the file system keeps access lists"
    logger.warning("control.group: \(path) cannot be given to \(name): \(String(cString: strerror(number))); \(help)")
  }

  private static func remedy(_ error: HTTPServerError) -> String {
    if case .pathOccupied = error { return "; move it away, or set control.socket to another path" }
    guard case .cannotListen(_, _, let number) = error else { return "" }
    switch number {
    case ENOENT: return "; its folder has to be there (RuntimeDirectory= in the unit), or set control.socket"
    case EACCES, EROFS, EPERM: return "; set control.socket to a path that this user may write, or to \"\""
    default: return ""
    }
  }
}
