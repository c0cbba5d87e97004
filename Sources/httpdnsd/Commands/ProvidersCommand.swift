// ProvidersCommand.swift -- `httpdnsd providers`: shows the state of the running daemon's providers.

import ArgumentParser
import Control

struct ProvidersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "providers",
    abstract: "Show each provider's state, round trip and usage.",
    discussion: """
      One line per provider, in the order of the configuration: whether it is up, has no answers, is unreachable, pauses or has no units; \
      the server that is asked first; the average round trip since the start; billing units of the current day (UTC) \
      and units_per_day; transfers since the start, and how many of them failed. Below the table: why a provider is \
      not used and for how long, and its last failure. --json adds failures by reason and the distribution of round \
      trips.

      Example: httpdnsd providers

      Example: httpdnsd providers --json

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws { try control.report { client, form throws(ControlClientError) in try client.providers(form) } }
}
