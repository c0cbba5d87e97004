// Supervision.swift -- takes sockets from a service manager, and reports readiness, watchdog and status to it.

import EventLoop
import Forwarder
import Frontend
import Logging
import Resolver
import ServiceManager
import Upstreams

/// Does nothing without a service manager. Main thread only.
final class Supervision {
  private let environment: ServiceEnvironment
  private let notifier: ServiceNotifier?
  private var watchdog: Watchdog?
  private var status: StatusReport?
  /// The mistakes that the last reload found; empty if it succeeded.
  private var mistakes: [String] = []
  private var isEnding = false

  /// - Parameter logger: for failures to reach the service manager.
  init(_ environment: ServiceEnvironment, _ logger: Logger) {
    self.environment = environment
    notifier = environment.notifySocket.flatMap(ServiceNotifier.init)
    if let name = environment.notifySocket, notifier == nil {
      logger.warning("NOTIFY_SOCKET: \(name) is not the name of a socket; nothing is reported to the service manager")
    }
  }

  /// The sockets that the service manager passed.
  ///
  /// - Throws: `StartError.other` for the first one that cannot be used.
  func sockets() throws(StartError) -> [InheritedSocket] {
    do throws(InheritedSocketError) {
      var sockets: [InheritedSocket] = []
      for descriptor in environment.descriptors { sockets.append(try InheritedSocket(descriptor)) }
      return sockets
    } catch { throw .other(error.description) }
  }

  /// Reports readiness as soon as the loop runs, and then the watchdog and status. Call it when the sockets are bound
  /// and the configuration is read.
  func begin(_ forwarder: Forwarder, _ addresses: [ListeningAddress], _ logger: Logger) {
    guard let notifier else { return }
    forwarder.loop.inNextTurn { [self] in
      let status = StatusReport(on: forwarder.loop) { [weak self] in
        serviceStatus(addresses, forwarder.resolver.assumeIsolated { $0.providerReports() }, self?.mistakes ?? [])
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
          logger.error("watchdog not notified: \(list) is stuck")
        }
      }
      watchdog?.start()
      if !notifier.send(.ready, .status(status.line)) {
        logger.warning("NOTIFY_SOCKET: cannot send READY=1 to the service manager")
      }
    }
  }

  /// Reports that a reload begins. `hasReloaded` must follow unless the program ends first.
  func reloads() {
    if !isEnding { notifier?.send(.reloading) }
  }

  /// Reports that a reload has ended. If there are mistakes, the old configuration is still in effect.
  func hasReloaded(_ mistakes: [String]) {
    self.mistakes = mistakes
    // A program that is stopping is not ready.
    guard !isEnding, let status else { return }
    notifier?.send(.ready, .status(status.renewed()))
  }

  /// Reports that the program is stopping.
  func end() {
    isEnding = true
    watchdog?.stop()
    status?.stop()
    notifier?.send(.stopping, .status("answering the last queries"))
  }
}

/// The daemon's state in one line.
///
/// - Parameter mistakes: why the last reload failed; empty if it succeeded.
private func serviceStatus(
  _ addresses: [ListeningAddress], _ providers: [ProviderReport], _ mistakes: [String]
) -> String {
  let places = addresses.map { $0.isUDP && $0.isTCP ? "\($0.address)" : "\($0.address) (\($0.transport))" }
  var text = "serving on \(places.joined(separator: ", ")); "
  text += providers.count == 1 ? "1 provider" : "\(providers.count) providers"
  for word in ProviderReport.State.words where word != ProviderReport.State.up.word {
    let count = providers.count { $0.state.word == word }
    if count > 0 { text += ", \(count) \(word)" }
  }
  guard let first = mistakes.first else { return text }
  return "\(text); configuration unchanged: \(first)\(mistakes.count > 1 ? " (and \(mistakes.count - 1) more)" : "")"
}
