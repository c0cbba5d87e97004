// MachineTrial.swift -- tries whether httpdnsd answers at an address, and whether the machine's programs get its answers.
//
// A name below `InstanceName.zone` has an address of the daemon's own. The control socket says which; the listening address
// and a lookup as an ordinary user's program makes it must give the same.

import Configuration
import Control
import DNSWire
import EventLoop
import LocalDNS
import SystemSetup

struct MachineTrial {
  /// What the control socket says.
  enum Daemon: Equatable {
    /// A daemon with this address.
    case runs(IPAddress)
    /// No process listens on the socket.
    case absent(socket: String)
    /// There is no socket, this user may not use it, or the daemon's version does not say.
    case unknown
  }

  let daemon: Daemon

  /// - Parameter socket: the path of the control socket; nil if it is switched off or unknown.
  init(socket: String?) {
    guard let socket else {
      daemon = .unknown
      return
    }
    do throws(ControlClientError) {
      daemon = try ControlClient(path: socket, patience: .seconds(2)).instance().map { .runs($0) } ?? .unknown
    } catch .notRunning {
      daemon = .absent(socket: socket)
    } catch {
      daemon = .unknown
    }
  }

  /// Why the daemon does not answer at an address; nil if it does.
  func objection(to finding: HealthFinding) -> String? {
    let isStranger = finding.overUDP != nil && finding.isOurs == false
    if finding.failure != nil, !isStranger { return finding.line }
    let server = finding.server
    switch (finding.instance, daemon) {
    case (let instance?, .runs(let expected)) where instance != expected:
      return "another httpdnsd answers at \(server) than the one with this control socket: `systemctl status httpdnsd`"
    case (_?, _): return nil
    case (nil, .absent(let socket)) where finding.isOurs == nil:
      return "\(server) refuses queries from this machine, and no httpdnsd is behind \(socket)"
    case (nil, _) where finding.isOurs == nil: return nil
    case (nil, _):
      let holder =
        PortHolder.find(server, transport: "udp").map { "\($0) does" }
        ?? "`\(PortHolder.command(server, transport: "udp"))` shows which"
      return "another program than httpdnsd answers at \(server): \(holder)"
    }
  }

  /// What programs get.
  enum Verdict: Equatable {
    case used
    /// They get other answers, or none.
    case unused
    /// The daemon does not answer where programs are to ask it, for this reason.
    case silent(String)
    /// It could not be tried.
    case unknown
  }

  /// Tries what programs get that should ask at an address. Blocks, for ten seconds at most.
  func verdict(at nameserver: Nameserver) -> Verdict {
    guard let address = nameserver.socketAddress,
      let finding = try? Healthcheck.run([address], timeout: .seconds(2)).first
    else { return .unknown }
    if let objection = objection(to: finding) { return .silent(objection) }
    guard let instance = finding.instance else { return .unknown }
    return MachineTrial.verdict(about: instance)
  }

  /// Whether programs get the answers of the daemon with an address.
  static func verdict(about instance: IPAddress) -> Verdict {
    switch ProgramLookup.find("\(InstanceName.fresh())") {
    case .address(let text): text == "\(instance)" ? .used : .unused
    case .noAddress: .unused
    case .failed: .unknown
    }
  }
}

extension Nameserver {
  var socketAddress: SocketAddress? { SocketAddress(text: "\(host.contains(":") ? "[\(host)]" : host):\(port)") }
}
