// MachineTrial.swift -- tries whether httpdnsd answers at an address, and whether the machine's programs get its answers.
//
// A name below `InstanceName.zone` has an address of the daemon's own. The control socket says which; the listening address
// and a lookup as an ordinary user's program makes it must give the same.

import Control
import DNSWire
import EventLoop
import LocalDNS
import SystemSetup

struct MachineTrial {
  /// What the control socket says.
  enum Daemon: Equatable {
    /// With the daemon's own address.
    case runs(IPAddress)
    /// A daemon of a version that has no such address.
    case older
    /// No socket exists, no daemon listens on it, this user may not use it, or it is that of another configuration.
    case unknown
  }

  let daemon: Daemon

  /// The address of the daemon behind the control socket; nil if that is unknown.
  var instance: IPAddress? {
    guard case .runs(let address) = daemon else { return nil }
    return address
  }

  /// - Parameters:
  ///   - socket: the path of the control socket; nil if it is switched off or unknown.
  ///   - configuration: the path of the configuration that names it. Two daemons may name the same one.
  ///   - patience: how long to wait for the daemon behind the socket; if there is no time left, it is not asked.
  init(socket: String?, configuration: String?, patience: Duration = .seconds(2)) {
    guard let socket, patience > .zero else {
      daemon = .unknown
      return
    }
    do throws(ControlClientError) {
      guard let found = try ControlClient(path: socket, patience: patience).instance() else {
        daemon = .older
        return
      }
      let isSame = configuration.map { FilePath.isSame(found.file, $0) } ?? false
      daemon = isSame ? .runs(found.address) : .unknown
    } catch { daemon = .unknown }
  }

  /// Why the daemon does not answer at an address.
  struct Objection {
    /// A sentence with the address.
    let sentence: String
    /// The same for those who know the address.
    let reason: String
  }

  /// Why the daemon does not answer at an address; nil if it does, or if nothing shows that another program answers.
  func objection(to finding: HealthFinding) -> Objection? {
    let failure = finding.reason.map { Objection(sentence: finding.line, reason: $0) }
    guard finding.overUDP != nil, finding.isOurs == false || failure == nil else { return failure }
    return strangers(at: finding).map { Objection(sentence: $0, reason: $0) } ?? failure
  }

  /// Which other program answers, in a sentence; nil if nothing shows that one does.
  private func strangers(at finding: HealthFinding) -> String? {
    let server = finding.server
    let stranger = "another program than httpdnsd answers at \(server): "
    if case .runs(let expected) = daemon, let instance = finding.instance {
      guard instance != expected else { return nil }
      return "another httpdnsd answers at \(server) than the one with this control socket: `systemctl status httpdnsd`"
    }
    let isHere = IPAddress(octets: server.octets).map { OwnAddress.contains("\($0)") } ?? false
    let holders = isHere ? PortHolder.holders(server, transport: "udp") : []
    let command = "`\(PortHolder.command(server, transport: "udp"))` shows which"
    let other = holders.first { !$0.mayBeHTTPDNSD }.map { "\($0) does" }
    if case .runs = daemon, finding.isOurs == false { return stranger + (other ?? command) }
    // An earlier version has no address. With an address, a server passes the question to an httpdnsd elsewhere.
    if holders.contains(where: \.mayBeHTTPDNSD) { return nil }
    if let other { return stranger + other }
    return finding.isOurs == false && daemon != .older ? stranger + command : nil
  }

  /// Why programs of this machine get no answers of the daemon at an address; nil if they do. Unlike for `healthcheck`, a
  /// refusal by `listen.allow` is no answer.
  func obstacle(in finding: HealthFinding) -> String? {
    let refusal = "httpdnsd refuses queries from this machine: add \"127.0.0.0/8\" and \"::1/128\" to listen.allow"
    return objection(to: finding)?.sentence ?? (finding.refusal == .refused ? refusal : nil)
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

  /// Tries what programs get that should ask at an address. Blocks, for twelve seconds at most.
  func verdict(at nameserver: Nameserver) -> Verdict {
    guard let address = nameserver.socketAddress,
      let finding = try? Healthcheck.run([address], timeout: .seconds(2)).first
    else { return .unknown }
    if let obstacle = obstacle(in: finding) { return .silent(obstacle) }
    guard let instance = finding.instance else { return .unknown }
    return MachineTrial.verdict(about: instance)
  }

  /// Whether programs get the answers of the daemon with an address, or of any httpdnsd if that is nil.
  static func verdict(about instance: IPAddress?) -> Verdict {
    switch ProgramLookup.find("\(InstanceName.fresh())") {
    case .address(let text): MachineTrial.isAddress(text, of: instance) ? .used : .unused
    case .noAddress: .unused
    case .failed: .unknown
    }
  }

  private static func isAddress(_ text: String, of instance: IPAddress?) -> Bool {
    guard let address = IPAddress(text: text) else { return false }
    return instance.map { $0 == address } ?? InstanceName.isAddress(address)
  }
}

extension Nameserver {
  var socketAddress: SocketAddress? { SocketAddress(text: "\(host.contains(":") ? "[\(host)]" : host):\(port)") }
}
