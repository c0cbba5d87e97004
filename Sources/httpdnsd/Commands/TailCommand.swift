// TailCommand.swift -- `httpdnsd tail`: shows queries as the running daemon answers them.

import ArgumentParser
import Control
import DNSWire

struct TailCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tail",
    abstract: "Show queries as the running daemon answers them.",
    discussion: """
      One line per answered query, in the order of the answers: time, client, transport, name and type, RCODE, the \
      source of the answer (a provider, localdns, hit for the cache, stale, local for rules and special names), the \
      duration, and the reason for a failure. With a name, it shows that name and the names below it. With --json, \
      each line is an object with the members of the query log. Ctrl-C ends it.

      The daemon passes on at most 5,000 queries per second and counts the others. Lines contain names and clients, so \
      only root may watch unless control.tail = true allows it to every user of the control socket. The daemon logs \
      the ID of each user that watches. Two readers can watch at once; one that reads too slowly is cut off.

      Example: httpdnsd tail
      Example: httpdnsd tail example.com --failed

      Exit code 0: standard output was closed; 1: the daemon cannot be reached, refuses or stops; 64: a mistake on the \
      command line. A signal terminates it.
      """)

  @OptionGroup var control: ControlOptions

  @Flag(help: "Show only queries that failed: neither NOERROR nor NXDOMAIN.") var failed = false

  @Argument(help: "Show only this domain name and the names below it.") var name: String?

  func validate() throws { if let name { try ControlOptions.check(name) } }

  func run() throws {
    let client = ControlClient(path: try control.path())
    do throws(ControlClientError) {
      try client.tail(name, onlyFailed: failed, control.form) { octets in
        Console.print(String(decoding: octets, as: UTF8.self))
      }
    } catch { throw control.failure(error) }
  }
}
