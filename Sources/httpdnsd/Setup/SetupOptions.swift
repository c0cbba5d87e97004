// SetupOptions.swift -- shows or applies one method of making httpdnsd the machine's nameserver.

import ArgumentParser
import Configuration
import SystemSetup

/// `--root`, as most subcommands of `setup` have it.
struct SetupRootOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The root of another machine, such as an image that is being built. No command is run.", valueName: "folder"),
    completion: .directory)
  var root: String?

  var place: Root { root.map { Root($0) } ?? Root() }

  func validate() throws {
    if let root, !place.isPresent { throw ValidationError("--root: no folder \(root)") }
  }
}

/// The options of each method.
struct SetupOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The configuration file. Default: /etc/httpdnsd/httpdnsd.toml, below --root if that is given.",
      valueName: "file"),
    completion: .file())
  var config: String?

  @Option(
    help: ArgumentHelp(
      "The address at which programs ask httpdnsd. Default: the first loopback address of listen.addresses, preferably with port 53.",
      valueName: "address"))
  var nameserver: String?

  @Option(
    help: ArgumentHelp(
      "The installed program, for the hooks. Default: the one that httpdnsd.service starts, or else this one (with --root: "
        + "/usr/bin/httpdnsd or /usr/local/bin/httpdnsd).",
      valueName: "file"),
    completion: .file())
  var program: String?

  @OptionGroup var root: SetupRootOption

  @Flag(help: "Apply the changes.")
  var apply = false

  @Flag(help: "Apply despite doubts, or although no server answers at the address.")
  var force = false

  func validate() throws {
    if let nameserver, Endpoint(text: nameserver, defaultPort: Nameserver.standardPort) == nil {
      throw ValidationError("'\(nameserver)' is not an address, such as 127.0.0.1, 127.0.0.1:5300 or [::1]:5300")
    }
    if let program, !program.hasPrefix("/") { throw ValidationError("--program takes an absolute path") }
  }

  func run(_ method: SetupMethod) throws {
    var request = SetupRequest(root.place)
    (request.config, request.program) = (config, program)
    request.nameserver = nameserver.flatMap { Endpoint(text: $0, defaultPort: Nameserver.standardPort) }.map {
      Nameserver(host: "\($0.address)", port: $0.port)
    }
    let plan = try Setup.attempt { [request] () throws(SetupError) in try request.plan(method) }
    if let applied = try Setup.journal(root.place) {
      guard applied.method == method, applied.nameserver == plan.nameserver else {
        throw Setup.failure(
          "`setup \(applied.method.rawValue)` is applied for \(applied.nameserver.host); `httpdnsd setup undo` takes it back"
        )
      }
      print("this is applied already; `httpdnsd setup undo` takes it back")
      return
    }
    print(plan.text)
    let doubts = request.doubts(of: plan)
    for doubt in doubts { Console.error("httpdnsd: \(doubt)") }
    guard apply else {
      print("nothing was changed; --apply makes these changes, and `httpdnsd setup undo` takes them back")
      return
    }
    guard doubts.isEmpty || force else { throw Setup.failure("nothing was changed; --force does it all the same") }
    try Setup.apply(plan, root.place)
    print("done; `httpdnsd setup undo` takes it back")
  }
}
