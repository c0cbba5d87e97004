// SetupOptions.swift -- shows or applies one way of making httpdnsd the machine's nameserver.

import ArgumentParser
import Configuration
import DNSWire
import EventLoop
import Glibc
import LocalDNS
import SystemSetup

/// `--root`, as most subcommands of `setup` have it.
struct SetupRootOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The root of another machine, such as an image that is being built. No command is run then.", valueName: "folder")
  )
  var root: String?

  var place: Root { root.map { Root($0) } ?? Root() }
}

/// The options of each way.
struct SetupOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The configuration file. Default: /etc/httpdnsd/httpdnsd.toml, below --root where that is given.",
      valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "Where programs ask httpdnsd. Default: the first loopback address of listen.addresses, port 53 before others.",
      valueName: "address"))
  var nameserver: String?

  @Option(
    help: ArgumentHelp("The installed program, for the hooks. Default: this one.", valueName: "file"))
  var program: String?

  @OptionGroup var root: SetupRootOption

  @Flag(help: "Do it.")
  var apply = false

  @Flag(help: "Do it even where it looks unwise, or where nobody answers at the address.")
  var force = false

  func run(_ method: SetupMethod) throws {
    let nameserver = try address()
    let plan = try Setup.attempt { () throws(SetupError) in
      try Plan.make(method, nameserver, program: programPath(), root: root.place)
    }
    if let applied = try Setup.attempt({ () throws(SetupError) in try Installation(root: root.place).journal() }) {
      guard applied.method == method, applied.nameserver == nameserver else {
        throw Setup.failure(
          "`setup \(applied.method.rawValue)` is applied for \(applied.nameserver.host); `httpdnsd setup undo` takes it back"
        )
      }
      print("this is applied already; `httpdnsd setup undo` takes it back")
      return
    }
    print(plan.text)
    let doubts = plan.doubts + (unanswered(method, nameserver).map { [$0] } ?? [])
    for doubt in doubts { Console.error("httpdnsd: \(doubt)") }
    guard apply else {
      print("nothing was changed; --apply does this, and `httpdnsd setup undo` takes it back")
      return
    }
    guard doubts.isEmpty || force else { throw Setup.failure("nothing was changed; --force does it all the same") }
    try Setup.apply(plan, root.place)
    print("done; `httpdnsd setup undo` takes it back")
  }

  /// Why programs would not get an answer.
  private func unanswered(_ method: SetupMethod, _ nameserver: Nameserver) -> String? {
    guard root.place.isMachine, !isAnswered(nameserver) else { return nil }
    var text = "nobody answers at \(nameserver.host) port \(nameserver.port): `systemctl start httpdnsd` first"
    let isWildcard = (try? addresses())?.contains { $0.address.octets.allSatisfy { $0 == 0 } } ?? false
    if method == .resolved, isWildcard {
      text += """
        ; a wildcard in listen.addresses takes port 53 of systemd-resolved's 127.0.0.53 too, which clashes: list \
        127.0.0.1:53 and this machine's other addresses one by one
        """
    }
    return text
  }

  /// Whether programs of this machine get answers there: unlike `healthcheck`, a refusal by `listen.allow` is none.
  private func isAnswered(_ nameserver: Nameserver) -> Bool {
    let host = nameserver.host.contains(":") ? "[\(nameserver.host)]" : nameserver.host
    guard let address = SocketAddress(text: "\(host):\(nameserver.port)"),
      let findings = try? Healthcheck.run([address], timeout: .seconds(2))
    else { return false }
    return findings.allSatisfy { $0.failure == nil && $0.refusal == nil }
  }

  private func addresses() throws -> [Endpoint] {
    let path = config ?? "\(root.root ?? "")/etc/httpdnsd/httpdnsd.toml"
    do throws(Mistakes) {
      return try Configuration.listenAddresses(path: path)
    } catch {
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
  }

  private func address() throws -> Nameserver {
    if let nameserver {
      guard let endpoint = Endpoint(text: nameserver, defaultPort: Nameserver.standardPort) else {
        throw ValidationError("'\(nameserver)' is not an address, such as 127.0.0.1, 127.0.0.1:5300 or [::1]:5300")
      }
      return Nameserver(host: "\(endpoint.address)", port: endpoint.port)
    }
    let loopback = try addresses().compactMap { endpoint -> Nameserver? in
      let isWildcard = endpoint.address.octets.allSatisfy { $0 == 0 }
      guard endpoint.port != 0, isWildcard || endpoint.address.isLoopback else { return nil }
      let host = isWildcard ? (endpoint.address.isIPv6 ? "::1" : "127.0.0.1") : "\(endpoint.address)"
      return Nameserver(host: host, port: endpoint.port)
    }
    if let found = loopback.first(where: { $0.port == Nameserver.standardPort }) ?? loopback.first { return found }
    throw Setup.failure(
      """
      listen.addresses has no address of this machine's loopback: add \"127.0.0.1:53\", or say with --nameserver where \
      programs ask
      """)
  }

  private func programPath() -> String {
    if let program { return program }
    if !root.place.isMachine {
      for path in ["/usr/bin/httpdnsd", "/usr/local/bin/httpdnsd"] where root.place.exists(path) { return path }
    }
    var path = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = path.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
    return count > 0 ? String(decoding: path[..<count], as: UTF8.self) : "/usr/local/bin/httpdnsd"
  }
}
