// SetsCommand.swift -- `httpdnsd sets`: the firewall sets of rules, and filling them again.

import ArgumentParser
import Control

struct SetsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sets",
    abstract: "Show the firewall sets of rules, or fill them again.",
    discussion: """
      Each set of nftables that a rule names: its type, the addresses that were added, those that could not be, those \
      whose answer did not wait for the kernel, and its state. "sets refill" adds the addresses of all cached answers \
      again, for scripts that load the firewall's rules; the daemon notices that by itself within 10 s.

      Example: httpdnsd sets
      Example: httpdnsd sets refill

      Exit code 0: all sets work; 1: the daemon cannot be reached or refuses; 2: a set gets no addresses; 64: a mistake \
      on the command line.
      """)

  enum Work: String, CaseIterable, ExpressibleByArgument { case refill }

  @OptionGroup var control: ControlOptions

  @Argument(help: "What to do besides showing them: refill.") var work: Work?

  /// A refill takes a moment for each 128 addresses of a large cache, and longer where the kernel is slow.
  private static let patience = Duration.seconds(300)

  func run() throws {
    try control.report(patience: work == nil ? nil : SetsCommand.patience) {
      client, form throws(ControlClientError) in
      try client.sets(refilled: work == .refill, form)
    }
  }
}
