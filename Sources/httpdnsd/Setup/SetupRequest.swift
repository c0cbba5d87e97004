// SetupRequest.swift -- a requested setup method: its plan, and the doubts about it.

import Configuration
import Files
import LocalDNS
import SystemSetup

/// The parameters of a method; those that are nil are derived from the machine.
struct SetupRequest {
  let root: Root
  /// The configuration's path; nil means the default path below the root.
  var config: String?
  /// The address that programs ask; nil means the first loopback address that httpdnsd listens on.
  var nameserver: Nameserver?
  /// The installed program; nil means to search for it.
  var program: String?

  init(_ root: Root) { self.root = root }

  /// Returns the changes of a method.
  ///
  /// - Throws: if the method or the addresses do not fit the machine.
  func plan(_ method: SetupMethod) throws(SetupError) -> Plan {
    let wildcard: String?
    let asked: Nameserver
    if let nameserver {
      (asked, wildcard) = (nameserver, (try? ListeningAddresses(config: config, root))?.wildcard)
    } else {
      let listening = try ListeningAddresses(config: config, root)
      guard let found = listening.nameserver else {
        throw .refused(
          """
          listen.addresses has no loopback address: add \"127.0.0.1:53\", or pass the address that programs are to ask \
          with --nameserver
          """)
      }
      (asked, wildcard) = (found, listening.wildcard)
    }
    return try Plan.make(method, asked, program: programPath, wildcard: wildcard, root: root)
  }

  /// Returns the reasons why `--apply` refuses a plan without `--force`.
  ///
  /// - Parameter starting: whether to ask the daemon even if that starts it through its socket.
  func doubts(of plan: Plan, starting: Bool = true) -> [String] {
    guard root.isMachine else { return plan.doubts }
    if !starting, SystemCommand.isSocketActive, !SystemCommand.isServiceActive { return plan.doubts }
    return plan.doubts + [obstacle(at: plan.nameserver)].compactMap { $0 }
  }

  /// The beginning of a sentence that ends with the reason.
  static let unused = "programs on this machine do not use httpdnsd: "
  static let untried = "it could not be tried whether programs on this machine use httpdnsd"

  /// Why the machine's programs do not use httpdnsd although a method is applied; nil if they do.
  func sentence(about method: SetupMethod, _ nameserver: Nameserver) -> (text: String, isTried: Bool)? {
    switch trial.verdict(at: nameserver) {
    case .used: return nil
    case .unused: return (SetupRequest.unused + Diversion(method, nameserver, root: root).reason, true)
    case .silent(let reason): return (SetupRequest.unused + reason, true)
    case .unknown: return (SetupRequest.untried, false)
    }
  }

  private var trial: MachineTrial {
    let path = Configuration.path(given: config)
    return MachineTrial(socket: (try? Configuration.control(path: path))?.socket, configuration: path)
  }

  /// Why programs of this machine get no answers of the daemon there; nil if they do.
  private func obstacle(at nameserver: Nameserver) -> String? {
    let start = "start httpdnsd with `systemctl start httpdnsd`"
    let none = "no server answers at \(nameserver.host) port \(nameserver.port): \(start)"
    guard let address = nameserver.socketAddress,
      let finding = try? Healthcheck.run([address], timeout: .seconds(2)).first,
      finding.overUDP != nil
    else { return none }
    return trial.obstacle(in: finding)
  }

  /// The program that hooks start: the given one, the unit's, or else this one; below another root, the installed one.
  private var programPath: String {
    let unit = ServiceUnit(root)
    if let program = program ?? unit.program { return program }
    let usual = "/usr/local/bin/httpdnsd"
    guard root.isMachine else { return unit.installedProgram ?? usual }
    return Folder.target(ofLink: "/proc/self/exe") ?? usual
  }
}
