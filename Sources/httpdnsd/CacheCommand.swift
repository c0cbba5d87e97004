// CacheCommand.swift -- `httpdnsd cache NAME`: what the running daemon keeps of a name.

import ArgumentParser
import Control

/// Shows the entries of a name.
struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Show what the running daemon's cache has for a name.",
    discussion: """
      Every answer that is kept, to whatever type, on whatever route and network, for whatever client subnet: its \
      records with the TTLs that are left, how old it is, for how long it counts and may be given as stale data, how \
      often it was used, when it is refreshed, and who gave it. Also denials of names above that cover it, and failures \
      that are remembered.

      Example: httpdnsd cache www.example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: nothing is kept; 64: a mistake on the command \
      line.
      """)

  @OptionGroup var control: ControlOptions

  @Argument(help: "The domain name.")
  var name: String

  func validate() throws { try ControlOptions.check(name) }

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.cache(name, form) }
  }
}
