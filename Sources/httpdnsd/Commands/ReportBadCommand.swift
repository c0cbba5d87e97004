// ReportBadCommand.swift -- `httpdnsd report-bad NAME ADDRESS`: moves a failing address to the end.

import ArgumentParser
import Control
import DNSWire

struct ReportBadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report-bad",
    abstract: "Move a failing address to the end of a name's answers.",
    discussion: """
      Moves the address to the end of every cached answer to the name, for ranking.bad_for; the others keep rotating. \
      An answer with no other address that works is not changed.

      Example: httpdnsd report-bad www.example.com 192.0.2.7

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: no cached answer contains both the address \
      and another one that works; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Argument(help: "The domain name.") var name: String

  @Argument(help: "The IPv4 or IPv6 address.") var address: String

  func validate() throws {
    try ControlOptions.check(name)
    if IPAddress(text: address) == nil { throw ValidationError("'\(address)' is not an IP address") }
  }

  func run() throws {
    try control.report { client, form throws(ControlClientError) in try client.reportBad(name, address, form) }
  }
}
