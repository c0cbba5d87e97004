// DashboardCommand.swift -- `httpdnsd dashboard`: prints the address at which a browser signs in to the dashboard.

import ArgumentParser
import Control

struct DashboardCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dashboard",
    abstract: "Print an address that signs a browser in to the running daemon's dashboard.",
    discussion: """
      The dashboard shows figures to all who reach web.address. Names, live queries and buttons need a session, which \
      the printed address begins: it works once and within a minute. A session lasts twelve hours, or until the page's \
      "Sign out" or the end of the daemon. It may do what the control commands do. Live queries are for sessions of \
      root, or of every user of the control socket with control.tail = true.

      From another machine, a tunnel leads to it: ssh -L 9353:127.0.0.1:9353 HOST, then open the address.

      Example: httpdnsd dashboard

      Exit code 0: printed; 1: the daemon cannot be reached, or web.dashboard is false; 64: a mistake on the command line.
      """)

  @OptionGroup var control: ControlOptions

  func run() throws {
    try control.report { (client, form) throws(ControlClientError) in try client.dashboard(form) }
  }
}
