// RefreshCommand.swift -- `httpdnsd refresh NAME`: the running daemon asks anew at once.

import ArgumentParser
import Control
import DNSWire

/// Lets the daemon ask anew for a name.
struct RefreshCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refresh",
    abstract: "Fetch a name again now, for the running daemon's cache.",
    discussion: """
      Asks for everything that is kept of the name; where that is nothing, or that there is no such name, for the types \
      of refresh.types. What was kept is given to clients until the new answer is there, and stays where none comes. \
      The budget of [refresh] does not count here, but providers charge for it all the same.

      Example: httpdnsd refresh --type AAAA www.example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: a question has no answer, or nobody is asked \
      for the name; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Option(name: .customLong("type"), help: "Only this type; may be given several times.")
  var types: [String] = []

  @Argument(help: "The domain name.")
  var name: String

  func validate() throws {
    try ControlOptions.check(name)
    for type in types where RecordType(text: type)?.isOnlyAsked ?? true {
      throw ValidationError("'\(type)' is not a type that can be asked for")
    }
    if types.count > RefreshRequest.mostTypes {
      throw ValidationError("\(types.count) types; at most \(RefreshRequest.mostTypes) at once")
    }
  }

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.refresh(name, types: types, form) }
  }
}
