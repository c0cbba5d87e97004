// CacheCommand.swift -- `httpdnsd cache [NAME]`: shows the running daemon's cache, in total or for a name.

import ArgumentParser
import Control

struct CacheCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cache",
    abstract: "Show the running daemon's cache: a summary and the busiest entries, or all entries of a name.",
    discussion: """
      Without a name: how full the cache is, how many entries are fresh, stale and negative, and the entries with the \
      most hits, busiest first.

      With a name: every cached answer for all types, routes, networks and client subnets, each with its records and \
      their remaining TTLs, its age, how long it stays fresh and may be served as stale data, its hits, its next \
      refresh, and the upstream that it came from. An NXDOMAIN of a parent name that covers the name, and remembered \
      failures, are shown as well.

      Example: httpdnsd cache
      Example: httpdnsd cache --limit 10 --json
      Example: httpdnsd cache www.example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: the cache has nothing for the name; 64: a \
      mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Option(help: ArgumentHelp("The number of busiest entries to show. (default: 50)", valueName: "number"))
  var limit: Int?

  @Argument(help: "The domain name.") var name: String?

  func validate() throws {
    if let name { try ControlOptions.check(name) }
    if name != nil, limit != nil {
      throw ValidationError("--limit applies to the whole cache; for a name, all entries are shown")
    }
    if let limit, !(0...OverviewRequest.mostEntries).contains(limit) {
      throw ValidationError("--limit must be from 0 to \(OverviewRequest.mostEntries)")
    }
  }

  func run() throws {
    try control.report { client, form throws(ControlClientError) in
      if let name { return try client.cache(name, form) }
      return try client.cache(limit: limit ?? OverviewRequest.usualEntries, form)
    }
  }
}
