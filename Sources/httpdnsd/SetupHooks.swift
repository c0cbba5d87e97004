// SetupHooks.swift -- `httpdnsd setup pause`, `resume` and `renew`, which hooks call and people may.

import ArgumentParser
import Configuration
import SystemSetup

/// `setup pause`.
struct SetupPauseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause",
    abstract: "Have the machine ask as before setup, until `resume` or the service's next start.",
    discussion: """
      For setup resolved and resolvconf. The service does this when it is stopped, or fails again and again; a restart, or \
      a failure after which systemd starts it anew, leaves the machine's names waiting for it.
      """)

  @Flag(help: "Called by the service.")
  var service = false

  func run() throws {
    try Setup.engage { engagement throws(SetupError) in
      guard service else { return try engagement.pause() }
      return try engagement.pauseForService(result: Configuration.processEnvironment("SERVICE_RESULT"))
    }
  }
}

/// `setup resume`.
struct SetupResumeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Have the machine ask httpdnsd again after `pause`; the service does this when it is ready.")

  @Flag(help: "Called by the service.")
  var service = false

  func run() throws {
    try Setup.engage { engagement throws(SetupError) in try engagement.resume(isService: service) }
  }
}

/// `setup renew`.
struct SetupRenewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "renew",
    abstract: "Write the network's servers anew, for setup networkmanager and resolvconf; their hooks call this.")

  func run() throws {
    // Without the lock: resolvconf calls this while `resume` or `pause` has it.
    guard let journal = try Setup.journal(Root()) else { return }
    try Setup.attempt { () throws(SetupError) in try Engagement(journal, root: Root()).renew() }
  }
}
