// TailCommand.swift -- `httpdnsd tail`: queries as the running daemon answers them.

import ArgumentParser
import Control
import DNSWire

/// Shows answered queries until it is interrupted.
struct TailCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail",
    abstract: "Show queries as the running daemon answers them.",
    discussion: """
      A line for each answered query, in the order of the answers: when, client, transport, name and type, RCODE, the \
      source of the answer (a provider, localdns, hit for the cache, stale, local for rules and special names), how \
      long it took, and why it failed. With a name it shows that name and names below it. With --json each line is an \
      object with the members of the query log. Ctrl-C ends it.

      The daemon passes on 5,000 queries a second at most and counts the others. Lines hold names and clients, so only \
      root may watch, unless control.tail = true opens this to every user of the control socket. The daemon logs the \
      number of each user that watches. Two users can watch at once; a reader that is too slow is cut off.

      Example: httpdnsd tail
      Example: httpdnsd tail example.com --failed

      Exit code 0: standard output was closed; 1: the daemon cannot be reached, refuses or stops; 64: a mistake on the \
      command line. A signal ends it as signals do.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "Only queries that failed: no NOERROR, no NXDOMAIN.")
  var failed = false

  @Argument(help: "Only this domain name and names below it.")
  var name: String?

  func validate() throws { if let name { try ControlOptions.check(name) } }

  func run() throws {
    let client = ControlClient(path: try control.path())
    do throws(ControlClientError) {
      try client.tail(name, onlyFailed: failed, control.form) { octets in
        Console.print(String(decoding: octets, as: UTF8.self))
      }
    } catch { throw ControlOptions.failure(error) }
  }
}
