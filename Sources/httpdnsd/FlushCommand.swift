// FlushCommand.swift -- `httpdnsd flush`: the running daemon forgets what it knows of all names, or of some.

import ArgumentParser
import Control

/// Lets the daemon ask anew.
struct FlushCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "flush",
    abstract: "Remove names from the running daemon's cache.",
    discussion: """
      Answers go (fresh, stale and immutable ones), denials that cover a name, remembered failures, and what \
      providers have said that they do not list. Names of refresh.keep are fetched again at once, within the budget of \
      [refresh]; everything else when it is asked for. A question that is under way is not interrupted. Where there is \
      a cache file it has been replaced when the command ends.

      Example: httpdnsd flush www.example.com
      Example: httpdnsd flush --below example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: forgotten, but the cache file could not be \
      replaced; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "The names and everything below them.")
  var below = false

  @Argument(help: "Domain names, at most \(FlushRequest.mostNames); none means everything.")
  var names: [String] = []

  func validate() throws {
    for name in names {
      if name.hasPrefix("*.") {
        let domain = name.dropFirst(2)
        throw ValidationError("'\(name)': * is no wildcard here; `flush --below \(domain)` takes it with all below it")
      }
      try ControlOptions.check(name)
    }
    if below, names.isEmpty { throw ValidationError("--below needs a name") }
    if names.count > FlushRequest.mostNames {
      throw ValidationError("\(names.count) names; at most \(FlushRequest.mostNames) at once")
    }
  }

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.flush(names, below: below, form) }
  }
}
