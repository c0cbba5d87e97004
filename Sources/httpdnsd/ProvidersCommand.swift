// ProvidersCommand.swift -- `httpdnsd providers`: how the running daemon's providers fare.

import ArgumentParser
import Control

/// Shows each provider's state.
struct ProvidersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "providers",
    abstract: "Show each provider's state, round trip and usage.",
    discussion: """
      A line for each provider, in the order of the configuration: whether it is up, down, or left alone, until when \
      and why; the server that is asked first; how long replies took on average since the start; billing units of \
      this day (UTC) and units_per_day; transfers since the start, and those that brought nothing. With --json also \
      why those failed, and how replies' times were spread.

      Example: httpdnsd providers --json

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.providers(form) }
  }
}
