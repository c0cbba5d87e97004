// FlushCommand.swift -- `httpdnsd flush`: removes all names, or some, from the running daemon's cache.

import ArgumentParser
import Control

struct FlushCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "flush",
    abstract: "Remove names from the running daemon's cache.",
    discussion: """
      Removes cached answers (fresh, stale and immutable ones), NXDOMAIN that covers a name, remembered failures, and \
      "not listed" replies of providers. The daemon fetches names of refresh.keep again at once, within the budget of \
      [refresh], and other names when a client asks for them. Questions in flight are not interrupted. The \
      cache file, if there is one, has been replaced when the command exits. With cache.redis the other daemons of the \
      fleet flush the same names, unless --local is given.

      Example: httpdnsd flush www.example.com
      Example: httpdnsd flush --below example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: removed, but the cache file could not be \
      replaced or the other daemons could not be notified; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "Also remove everything below the names.") var below = false

  @Flag(help: "Flush this daemon only, and not the others of its fleet.") var local = false

  @Argument(help: "Domain names, at most \(FlushRequest.mostNames). If none is given, everything is removed.")
  var names: [String] = []

  func validate() throws {
    for name in names {
      if name.hasPrefix("*.") {
        let domain = name.dropFirst(2)
        throw ValidationError("'\(name)': * is not a wildcard; use `flush --below \(domain)` for all names below")
      }
      try ControlOptions.check(name)
    }
    if below, names.isEmpty { throw ValidationError("--below needs a name") }
    if names.count > FlushRequest.mostNames {
      throw ValidationError("\(names.count) names; at most \(FlushRequest.mostNames) at once")
    }
  }

  func run() throws {
    try control.report { client, form throws(ControlClientError) in
      try client.flush(names, below: below, isLocal: local, form)
    }
  }
}
