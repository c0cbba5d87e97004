// StatsCommand.swift -- `httpdnsd stats`: what the running daemon has counted.

import ArgumentParser
import Control

/// Shows the daemon's numbers.
struct StatsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Show the running daemon's counters, in all or by name.",
    discussion: """
      Since the start: queries and what became of them, how long answers took, the cache, refreshing, and the counters \
      of Alibaba's SDKs under their names, with times in milliseconds. With --by-name those counters for each of the \
      1,000 busiest names and types. A name that others have displaced begins anew when it is busy again.

      Example: httpdnsd stats --by-name --json

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "Counters for each of the busiest names.")
  var byName = false

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.stats(byName: byName, form) }
  }
}
