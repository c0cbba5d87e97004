// FleetCommand.swift -- `httpdnsd fleet`: shows the store that daemons share, and which daemons there are.

import ArgumentParser
import Control

struct FleetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fleet",
    abstract: "Show the shared store and the fleet's daemons.",
    discussion: """
      The store of cache.redis: whether it is used, or why not; how many lookups found another daemon's answer; how \
      often this daemon asked the provider while others waited; adopted refreshes; billing units of the whole fleet; \
      and the daemons that sent a heartbeat within the last 21 minutes. A daemon with a different configuration shares \
      no answers with this one.

      Example: httpdnsd fleet

      Example: httpdnsd fleet --json

      Exit code 0: the store is used; 1: the daemon cannot be reached or refuses; 2: the store is not configured, not \
      used, or refuses writes or a command; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws { try control.report { client, form throws(ControlClientError) in try client.fleet(form) } }
}
