// SetupOptions.swift -- shows or applies one method of making httpdnsd the machine's nameserver.

import ArgumentParser
import Configuration
import SystemSetup

/// The option `--root` of all subcommands of `setup`.
struct SetupRootOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The root of another machine, such as an image that is being built. No commands are run.", valueName: "folder"),
    completion: .directory)
  var root: String?

  var place: Root { root.map { Root($0) } ?? Root() }

  func validate() throws {
    if let root, !place.isPresent { throw ValidationError("--root: no folder \(root)") }
  }
}

/// The options of each method.
struct SetupOptions: ParsableArguments {
  static let configHelp = ArgumentHelp(
    "The configuration file. Default: $HTTPDNSD_CONFIG, or else /etc/httpdnsd/httpdnsd.toml; with --root, that file "
      + "below it.",
    valueName: "file")

  @Option(help: SetupOptions.configHelp, completion: .file()) var config: String?

  @Option(
    help: ArgumentHelp(
      "The address that programs ask. Default: the first loopback address in listen.addresses, if possible port 53.",
      valueName: "address"))
  var nameserver: String?

  @Option(
    help: ArgumentHelp(
      "The installed program, for the hooks. Default: what httpdnsd.service starts, else this one (with --root: "
        + "/usr/bin/httpdnsd or /usr/local/bin/httpdnsd).",
      valueName: "file"),
    completion: .file())
  var program: String?

  @OptionGroup var root: SetupRootOption

  @Flag(help: "Apply the changes.") var apply = false

  @Flag(help: "Apply despite doubts, or if no server answers at the address.") var force = false

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
          "`setup \(applied.method.rawValue)` is applied for \(applied.nameserver.host); run `httpdnsd setup undo`"
        )
      }
      print("this is applied already; `httpdnsd setup undo` reverts it")
      if apply { try tryUse(of: plan, request) }
      return
    }
    print(plan.text)
    let doubts = request.doubts(of: plan)
    for doubt in doubts { Console.error("httpdnsd: \(doubt)") }
    guard apply else {
      let option = doubts.isEmpty ? "--apply" : "--apply would refuse; with --force it"
      print("nothing was changed; \(option) makes these changes, and `httpdnsd setup undo` reverts them")
      return
    }
    guard doubts.isEmpty || force else { throw Setup.failure("nothing was changed; --force applies it anyway") }
    try Setup.apply(plan, root.place)
    print("done; `httpdnsd setup undo` reverts it")
    try tryUse(of: plan, request)
  }

  /// Fails if programs do not use httpdnsd although the plan is applied, unless it was to be applied by force.
  private func tryUse(of plan: Plan, _ request: SetupRequest) throws {
    guard root.place.isMachine, let sentence = request.sentence(about: plan.method, plan.nameserver) else { return }
    Console.error("httpdnsd: applied, but \(sentence.text)")
    guard force || !sentence.isTried else { throw ExitCode.failure }
  }
}
