// ListsCommand.swift -- `httpdnsd lists`: the lists of rules, their updates, and the names in them.

import ArgumentParser
import Control
import DNSWire

struct ListsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lists",
    abstract: "Show the lists of rules, update them, or find a name in them.",
    discussion: """
      Without arguments: each list with its names, the lines that are left out, the time since it was changed or \
      fetched, the time until the next fetch, and its state. "lists update" fetches one list or all of them, reads \
      files again, and returns when they are in use. "lists find" says which lists have a name, and by which line.

      Example: httpdnsd lists
      Example: httpdnsd lists update https://lists.example/names.txt
      Example: httpdnsd lists find www.example.com

      Exit code 0: done; 1: the daemon cannot be reached or refuses, or a list could not be updated; 2: no list has the \
      name; 64: a mistake on the command line.
      """)

  enum Work: String, CaseIterable, ExpressibleByArgument { case update, find }

  @OptionGroup var control: ControlOptions

  @Argument(help: "What to do besides showing them: update or find.") var work: Work?

  @Argument(help: "A list, as it is shown; the name to find.") var name: String?

  /// A fetch takes five minutes at most, and they come one after the other.
  private static let patience = Duration.seconds(3600)

  func validate() throws {
    guard work == .find else { return }
    guard let name else { throw ValidationError("find needs a domain name") }
    try ControlOptions.check(name)
  }

  func run() throws {
    try control.report(patience: work == nil ? nil : ListsCommand.patience) {
      client, form throws(ControlClientError) in
      switch work {
      case nil: try client.lists(form)
      case .update: try client.updateLists(name, form)
      case .find: try client.findInLists(name ?? "", form)
      }
    }
  }
}
