// RefreshCommand.swift -- `httpdnsd refresh NAME`: makes the running daemon fetch a name again now.

import ArgumentParser
import Control
import DNSWire

struct RefreshCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refresh",
    abstract: "Fetch a name again now, for the running daemon's cache.",
    discussion: """
      Fetches all types that are cached for the name; if there are none, or if the cache has NXDOMAIN, the types of \
      refresh.types. Clients get the cached answer until a new one arrives. The budget of [refresh] does not apply, \
      but providers charge for it.

      Example: httpdnsd refresh www.example.com

      Example: httpdnsd refresh --type AAAA www.example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: a question has no answer, or no upstream is \
      asked for the name; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Option(name: .customLong("type"), help: "Fetch only this type; may be repeated.") var types: [String] = []

  @Argument(help: "The domain name.") var name: String

  func validate() throws {
    try ControlOptions.check(name)
    for type in types where RecordType(text: type)?.isDataType != true {
      throw ValidationError("'\(type)' is not a type that can be asked for")
    }
    if types.count > RefreshRequest.mostTypes {
      throw ValidationError("\(types.count) types; at most \(RefreshRequest.mostTypes) at once")
    }
  }

  func run() throws {
    try control.report { client, form throws(ControlClientError) in try client.refresh(name, types: types, form) }
  }
}
