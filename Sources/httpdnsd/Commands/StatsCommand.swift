// StatsCommand.swift -- `httpdnsd stats`: shows the running daemon's counters.

import ArgumentParser
import Control

struct StatsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    abstract: "Show the running daemon's counters, in total or by name.",
    discussion: """
      Since the start: queries by outcome, latency, the cache, refreshes, and the counters of Alibaba's SDKs under the \
      SDKs' names, with times in milliseconds. --by-name shows those counters for each of the 1,000 busiest names and \
      types. A name that busier ones displaced starts again at zero when it becomes busy.

      Example: httpdnsd stats

      Example: httpdnsd stats --by-name --json

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "Show counters for each of the busiest names.") var byName = false

  func run() throws {
    try control.report { client, form throws(ControlClientError) in try client.stats(byName: byName, form) }
  }
}
