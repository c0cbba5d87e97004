// SetupHooks.swift -- `httpdnsd setup pause`, `resume` and `renew`, which hooks call and users may call.

import ArgumentParser
import Configuration
import SystemSetup

/// The options of all three.
struct SetupHookOptions: ParsableArguments {
  @OptionGroup var root: SetupRootOption

  @Flag(help: "Print nothing unless something goes wrong.") var quiet = false

  func say(_ text: String) {
    if !quiet { print(text) }
  }
}

/// The option of the two that the service's hooks call.
struct SetupServiceOption: ParsableArguments {
  @Flag(help: "Called by the service: print nothing, and check how the service ended.") var service = false
}

struct SetupPauseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Resolve names as before setup, until `resume` or the service's next start.",
    discussion: """
      For setup resolved and resolvconf. The service does this when it is stopped, or when it fails too often to be \
      restarted. During a restart, queries wait for the service.

      Example: sudo httpdnsd setup pause
      """)

  @OptionGroup var caller: SetupServiceOption
  @OptionGroup var options: SetupHookOptions

  func run() throws {
    let outcome = try Setup.engage(options.root.place, isQuiet: options.quiet) { engagement throws(SetupError) in
      guard caller.service else { return try engagement.pause() }
      return try engagement.pauseForService(result: Configuration.processEnvironment("SERVICE_RESULT"))
    }
    guard !caller.service else {
      // Without a journal the hook pauses by itself.
      if outcome == nil { throw ExitCode.failure }
      return
    }
    options.say(
      outcome.text(paused: "names are resolved as before setup until `httpdnsd setup resume` or the next service start")
    )
  }
}

struct SetupResumeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Resolve names through httpdnsd again after `pause`; the service does this when it is ready.",
    discussion: "Example: sudo httpdnsd setup resume")

  @OptionGroup var caller: SetupServiceOption
  @OptionGroup var options: SetupHookOptions

  func run() throws {
    let outcome = try Setup.engage(options.root.place, isQuiet: options.quiet) { engagement throws(SetupError) in
      try engagement.resume(isService: caller.service)
    }
    guard !caller.service else { return }
    options.say(outcome.text(paused: "the machine asks as before setup; `httpdnsd setup status` shows why"))
  }
}

extension Setup.HookState? {
  fileprivate func text(paused: String) -> String {
    guard let outcome = self else { return "nothing is applied" }
    guard let isEngaged = outcome.isEngaged else {
      return "`setup \(outcome.method.rawValue)` does not depend on the service: nothing to do"
    }
    return isEngaged ? "\(outcome.method.owner) now asks httpdnsd" : paused
  }
}

struct SetupRenewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew",
    abstract: "Rewrite the network's servers for setup networkmanager and resolvconf; their hooks call this.",
    discussion: "Example: sudo httpdnsd setup renew")

  @OptionGroup var options: SetupHookOptions

  func run() throws {
    let root = options.root.place
    if try Setup.journal(root) != nil { try Setup.needRoot(root) }
    // NetworkManager's script then lists the network's servers alone.
    if let remains = try Setup.attempt({ () throws(SetupError) in try Installation(root: root).remains() }) {
      throw Setup.failure("\(remains)")
    }
    switch try Setup.attempt({ () throws(SetupError) in try Installation(root: root).renew() }) {
    case .written(let path): options.say("\(path) was rewritten")
    case .same(let path): options.say("\(path) already lists the network's servers")
    case .replaced(let path): options.say("\(path) is not httpdnsd's any more and stays as it is")
    case .unneeded(let method): options.say("`setup \(method.rawValue)` lists no servers of the network: nothing to do")
    case nil: options.say("nothing is applied")
    }
  }
}
