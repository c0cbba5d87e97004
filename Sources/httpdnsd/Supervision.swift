// Supervision.swift -- the daemon as its service manager sees it: sockets from it, readiness, signs of life, one line.

import EventLoop
import Forwarder
import Listener
import Logging
import ServiceManager

/// What a service manager hands over and is told; nothing happens where there is none. Main thread only.
final class Supervision: @unchecked Sendable {
  private let environment: ServiceEnvironment
  private let notifier: ServiceNotifier?
  private var watchdog: Watchdog?
  private var status: StatusReport?

  /// - Parameter logger: is told where the service manager cannot be.
  init(_ environment: ServiceEnvironment, _ logger: Logger) {
    self.environment = environment
    notifier = environment.notifySocket.flatMap(ServiceNotifier.init)
    if let name = environment.notifySocket, notifier == nil {
      logger.warning("NOTIFY_SOCKET: \(name) is not the name of a socket; the service manager is told nothing")
    }
  }

  /// The sockets that were handed over.
  ///
  /// - Throws: `StartError.other` for the first one that cannot be served.
  func sockets() throws(StartError) -> [InheritedSocket] {
    do throws(InheritedSocketError) {
      var sockets: [InheritedSocket] = []
      for descriptor in environment.descriptors { sockets.append(try InheritedSocket(descriptor)) }
      return sockets
    } catch { throw .other(error.description) }
  }

  /// The sockets are bound and the configuration is read: says so as soon as the loop runs, and from then on how it goes.
  func begin(_ forwarder: Forwarder, _ addresses: [ListeningAddress], _ logger: Logger) {
    guard let notifier else { return }
    forwarder.loop.schedule(after: .zero) { [self] in
      let status = StatusReport(on: forwarder.loop) {
        serviceStatus(addresses, forwarder.resolver.assumeIsolated { $0.providerReports() })
      } send: {
        notifier.send(.status($0))
      }
      self.status = status
      forwarder.afterTurn = { status.loopHasTurned() }
      watchdog = environment.watchdogTimeout.map { timeout in
        Watchdog(forwarder.watchedThreads, on: forwarder.loop, timeout: timeout) {
          notifier.send(.watchdog)
        } onSilence: { names in
          let list = names.joined(separator: ", ")
          logger.error("no sign of life for the service manager: \(list) stands still")
        }
      }
      watchdog?.start()
      if !notifier.send(.ready, .status(status.line)) {
        logger.warning(
          "NOTIFY_SOCKET: nobody takes messages there; the service manager does not know that this is ready")
      }
    }
  }

  /// The configuration is about to be read anew; `hasReloaded` follows.
  func reloads() { notifier?.send(.reloading) }

  /// The configuration has been read anew, or the old one goes on.
  func hasReloaded() { notifier?.send(.ready) }

  /// The program is about to end.
  func end() {
    watchdog?.stop()
    status?.stop()
    notifier?.send(.stopping, .status("answering what has been read"))
  }
}

/// How the daemon fares, in one line.
func serviceStatus(_ addresses: [ListeningAddress], _ providers: [ProviderReport]) -> String {
  let places = addresses.map { $0.isUDP && $0.isTCP ? "\($0.address)" : "\($0.address) (\($0.isUDP ? "UDP" : "TCP"))" }
  var text = "serving on \(places.joined(separator: ", ")); "
  text += providers.count == 1 ? "1 provider" : "\(providers.count) providers"
  var (down, aside, spent) = (0, 0, 0)
  for provider in providers {
    switch provider.state {
    case .up: break
    case .down: down += 1
    case .aside: aside += 1
    case .spent: spent += 1
    }
  }
  for (count, state) in [(down, "down"), (aside, "left alone"), (spent, "out of units")] where count > 0 {
    text += ", \(count) \(state)"
  }
  return text
}
