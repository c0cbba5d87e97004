// ReportBadCommand.swift -- `httpdnsd report-bad NAME ADDRESS`: an address that does not work goes last.

import ArgumentParser
import Control
import DNSWire

/// Lets an address go last.
struct ReportBadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report-bad",
    abstract: "Put an address that does not work last in a name's answers.",
    discussion: """
      In every answer that is kept for the name and has the address, it comes after all others until the next answer \
      takes that one's place; the others go on taking turns. An only address stays.

      Example: httpdnsd report-bad www.example.com 192.0.2.7

      Exit code 0: done; 1: the daemon cannot be reached or refuses; 2: no kept answer has the address beside another \
      one; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Argument(help: "The domain name.")
  var name: String

  @Argument(help: "The IPv4 or IPv6 address.")
  var address: String

  func validate() throws {
    try ControlOptions.check(name)
    if IPAddress(text: address) == nil { throw ValidationError("'\(address)' is not an IP address") }
  }

  func run() throws {
    try control.tell { client, form throws(ControlClientError) in try client.reportBad(name, address, form) }
  }
}
