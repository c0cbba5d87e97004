// Operation.swift -- what operators use while the daemon runs: the control socket, and the dashboard on `web.address`.
//
// Resolver's loop only, or before it runs.

import Configuration
import Control
import DNSWire
import Dashboard
import EventLoop
import Forwarder
import Logging
import Telemetry
import Web

/// Joins the two: codes of the dashboard come over the control socket, and both have the same readers of queries.
final class Operation {
  private let forwarder: Forwarder
  private let web: WebServer?
  private let logger: Logger
  private let actions: ForwarderActions
  private let tails: TailService
  private let place: DashboardPlace
  private var refreshBudgets = (minute: 0, day: 0)

  /// - Parameters:
  ///   - web: nil if `web.address` is empty.
  ///   - file: the path of the file that the reloader reads.
  init(_ forwarder: Forwarder, _ reloader: Reloader, _ web: WebServer?, file: String, _ logger: Logger) {
    (self.forwarder, self.web, self.logger) = (forwarder, web, logger)
    place = DashboardPlace(web)
    actions = ForwarderActions(forwarder, reloader, file: file, makeCode: place.makeCode) { logger.info("\($0)") }
    tails = TailService(actions)
  }

  /// The listening server of the control socket; nil if it is switched off or cannot be opened.
  func openControlSocket(_ settings: Configuration.Control) -> ControlServer? {
    ControlSocket.open(settings, forwarder, actions, tails, logger)
  }

  /// Takes the settings that a reload may change.
  func follow(_ configuration: Configuration) {
    tails.isOpen = configuration.control.tail
    place.hosts = configuration.web.hosts
    refreshBudgets = (configuration.refresh.budgetPerMinute, configuration.refresh.budgetPerDay)
    web?.follow(configuration.web, makeDashboard)
  }

  private func makeDashboard() -> Dashboard {
    let (forwarder, logger) = (forwarder, logger)
    let statistics = forwarder.statistics
    return Dashboard(
      on: forwarder.loop,
      DashboardSources(
        version: ProgramVersion.text, statistics: { statistics.read() },
        refreshBudgets: { [weak self] in self?.refreshBudgets ?? (0, 0) }, actions: actions, tails: tails,
        note: { logger.notice("\($0)") },
        warn: { [occasional = forwarder.occasional] reason, text in
          occasional.log(.warning, reason: reason, now: BootInstant.now.nanoseconds, text)
        }, wallClock: { LogTime.now.nanoseconds }))
  }
}

/// Where a browser finds the dashboard.
private final class DashboardPlace {
  private weak var web: WebServer?
  /// `web.hosts`.
  var hosts: [DomainName] = []

  init(_ web: WebServer?) { self.web = web }

  /// Makes a code for a user of the control socket; nil while the dashboard is off.
  func makeCode(for user: UInt32) -> DashboardCode? {
    guard let web, let code = web.dashboard?.makeCode(for: user) else { return nil }
    let address = web.address
    if address.octets.allSatisfy({ $0 == 0 }) {
      let loopback = address.octets.count == 4 ? "127.0.0.1" : "[::1]"
      return DashboardCode(place: "http://\(loopback):\(address.port)", code: code, hint: nil)
    }
    if IPAddress(octets: address.octets)?.isLoopback ?? false {
      return DashboardCode(place: "http://\(address)", code: code, hint: nil)
    }
    // Tokens do not cross a network in clear.
    if let name = hosts.first {
      return DashboardCode(place: "https://\(name.text.dropLast())", code: code, hint: nil)
    }
    let hint =
      "a browser cannot sign in at \(address) without TLS: set web.address to a loopback address or a wildcard, or web.hosts"
    return DashboardCode(place: "http://\(address)", code: code, hint: hint)
  }
}
