// Firewall.swift -- nftables in a network namespace, by nft.

import Foundation
import Testing

/// The rule set of a machine.
struct Firewall {
  /// What programs of the machine are started with.
  let prefix: [String]

  /// An address in a set, in seconds.
  struct Element: Equatable {
    /// Nil in a set without timeouts.
    var timeout: Int?
    var expires: Int?
  }

  /// Whether nft works where namespaces are possible.
  static let isPossible: Bool =
    NetworkNamespace.isPossible
    && (try? ChildProcess.run(["unshare", "--net", "nft", "add table inet fw"]))?.ending == .exited(0)

  /// Runs one or more commands as one transaction.
  @discardableResult
  func nft(_ commands: String..., isJSON: Bool = false) throws -> String {
    let (ending, output, error) = try ChildProcess.run(
      prefix + ["nft"] + (isJSON ? ["-j"] : []) + [commands.joined(separator: "; ")])
    guard ending == .exited(0) else { throw Failure("nft \(commands): \(error)") }
    return output
  }

  /// Creates sets `four` and `six` in table `inet fw`, with timeouts unless there are other flags.
  func create(_ flags: String = "flags timeout;") throws {
    try nft(
      "add table inet fw", "add set inet fw four { type ipv4_addr; \(flags) }",
      "add set inet fw six { type ipv6_addr; \(flags) }")
  }

  /// The addresses of a set of table `inet fw`.
  func elements(_ set: String) throws -> [String: Element] {
    let output = try nft("list set inet fw \(set)", isJSON: true)
    guard let object = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any],
      let parts = object["nftables"] as? [[String: Any]],
      let found = parts.lazy.compactMap({ $0["set"] as? [String: Any] }).first
    else { throw Failure("nft: \(output)") }
    var elements: [String: Element] = [:]
    for element in found["elem"] as? [Any] ?? [] {
      if let address = element as? String {
        elements[address] = Element()
      } else if let fields = (element as? [String: Any])?["elem"] as? [String: Any],
        let address = fields["val"] as? String
      {
        elements[address] = Element(timeout: fields["timeout"] as? Int, expires: fields["expires"] as? Int)
      }
    }
    return elements
  }

  /// The addresses of both sets.
  func addresses() throws -> Set<String> { Set(try elements("four").keys).union(try elements("six").keys) }
}

/// A machine of its own with a firewall and a daemon, and the provider behind its router.
final class FirewallScene {
  let lab: Lab
  let machine: NetworkNamespace
  let firewall: Firewall
  let simulator: Simulator
  var settings: Settings
  let socket: String

  /// Public addresses of names below `example.`.
  static let zone = """
    $TTL 300
    www.example. A 93.184.216.34
    www.example. A 93.184.216.35
    www.example. AAAA 2606:2800:220::1
    www.example. HTTPS 1 . alpn=h2 ipv4hint=93.184.216.36 ipv6hint=2606:2800:220::2
    other.example. A 93.184.216.40
    short.example. 1 A 93.184.216.41
    """

  init(_ lab: Lab) throws {
    self.lab = lab
    machine = try NetworkNamespace(in: lab)
    firewall = Firewall(prefix: machine.prefix)
    simulator = try lab.simulator([], at: machine.world)
    try simulator.setZone(FirewallScene.zone)
    settings = Settings(Settings.json(simulator.http))
    settings.addresses = ["\(machine.host):0"]
    settings.listen = "allow = [\"100.64.0.0/10\"]"
    socket = settings.openControl(in: lab)
  }

  /// A rule for all names of the zone, with both sets.
  static func rule(_ more: String = "set_keep = \"100s\"", sets: [String] = ["inet#fw#four", "inet#fw#six"]) -> String {
    "[[rule]]\nname = \"tunnel\"\nnames = [\"example\"]\nuse = \"json\"\nsets = \(quoted(sets))\n\(more)\n"
  }

  /// Starts a daemon in there.
  ///
  /// - Parameter prefix: what becomes the daemon in there.
  func daemon(_ more: String, prefix: [String] = []) throws -> Daemon {
    settings.more = more
    return try lab.daemon(
      settings.text, environment: ["STATE_DIRECTORY": "\(lab.folder.path)"], prefix: machine.prefix + prefix)
  }

  /// Runs a command that reaches the daemon by its control socket.
  func control(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
    try lab.run(arguments + ["--socket", socket])
  }

  /// Waits for the refill of new sets, which would count an answer's addresses once more if it came after that.
  func awaitFirstRefill() throws { _ = try control("sets", "refill") }

  /// What `sets` shows of each set: its row, with single blanks.
  func rows() throws -> [String] {
    try control("sets").output.split(separator: "\n").dropFirst().map {
      $0.split(separator: " ").joined(separator: " ")
    }
  }
}

/// Runs a test on a machine with a firewall.
func withFirewall(_ body: (FirewallScene) throws -> Void) throws {
  try withLab { lab in try body(FirewallScene(lab)) }
}
