// ReportCommand.swift -- `httpdnsd report NAME ADDRESS`: tells the daemon what came of using an address.

import ArgumentParser
import Control
import DNSWire

struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Report whether an address of a name works.",
    discussion: """
      Three reports of a failure within a minute put the address last in the answers to that name for ten minutes \
      (ranking.bad_for); a report that it works ends that at once. Only addresses in cached answers count. \
      `report-bad` is believed at once.

      Example: httpdnsd report www.example.com 192.0.2.7 --failed

      Exit code 0: the report counted; 1: the daemon cannot be reached or refuses; 2: no cached answer to the name \
      has the address; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  @Argument(help: "The domain name.") var name: String

  @Argument(help: "The IPv4 or IPv6 address.") var address: String

  @Flag(name: .customLong("ok"), help: "The address worked.") var works = false

  @Flag(name: .customLong("failed"), help: "The address did not work.") var hasFailed = false

  @Option(name: .customLong("ms"), help: "With --ok: the round trip in milliseconds; `httpdnsd cache` shows it.")
  var milliseconds: Int?

  func validate() throws {
    try ControlOptions.check(name)
    if IPAddress(text: address) == nil { throw ValidationError("'\(address)' is not an IP address") }
    guard works != hasFailed else { throw ValidationError("give --ok or --failed") }
    guard milliseconds == nil || works else { throw ValidationError("--ms goes with --ok") }
    if let milliseconds, !(0...3_600_000).contains(milliseconds) { throw ValidationError("--ms is from 0 to 3600000") }
  }

  func run() throws {
    try control.report { client, form throws(ControlClientError) in
      try client.report(name, address, works: works, milliseconds: milliseconds, form)
    }
  }
}
