// RunCommand.swift -- `httpdnsd run`: serves until SIGTERM or SIGINT; SIGHUP reloads the configuration.

import ArgumentParser
import CProcess
import Configuration
import Control
import DNSWire
import EventLoop
import Forwarder
import Frontend
import Glibc
import Listener
import Logging
import ServiceManager
import Telemetry
import Web

/// Runs the daemon in the foreground.
struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Serve DNS until SIGTERM or SIGINT; SIGHUP reloads the configuration. Logs go to stderr.",
    discussion: """
      Signals: on SIGTERM or SIGINT the daemon answers the queries in flight, for at most two seconds, and stops; on \
      SIGHUP it reloads the configuration as `httpdnsd reload` does and logs the result; on SIGUSR2 it writes the last \
      debug lines to the log. SIGUSR1, SIGPIPE and SIGXFSZ are ignored.

      Variables: HTTPDNSD_CONFIG names the configuration file; HTTPDNSD_LISTEN, HTTPDNSD_PROVIDER and the others in \
      httpdnsd.toml(5) replace its keys; systemd's LISTEN_FDS, NOTIFY_SOCKET, WATCHDOG_USEC and CREDENTIALS_DIRECTORY \
      are used; SSLKEYLOGFILE is ignored.

      Example: httpdnsd run --config /etc/httpdnsd/httpdnsd.toml
      Example: HTTPDNSD_LISTEN=127.0.0.1:5300 httpdnsd run --config /dev/null

      Exit code 0: stopped by a signal; 1: the configuration has a mistake, or an address cannot be bound; 64: a \
      mistake on the command line.
      """)

  /// How long the daemon waits for the reader of the log before it exits, in milliseconds.
  private static let lastLinesWithin = 500

  @OptionGroup var options: ConfigurationOption

  func run() throws {
    let environment = ServiceEnvironment.take()
    let loaded = try LoadedConfiguration(path: options.config, recorder: FlightRecorder())
    let logger = loaded.logger
    LibraryMessages.pass(to: { logger.debug("libevent: \($0)") })
    defer { loaded.log.finish(within: RunCommand.lastLinesWithin) }
    let supervision = Supervision(environment, logger)
    for warning in loaded.warnings { logger.warning("\(warning)") }
    ProcessEnvironment.log(to: logger)
    let (allowed, need) = (Process.prepare(loaded.configuration), loaded.configuration.descriptorNeed)
    if 0..<need ~= allowed {
      logger.warning(
        "may need \(need) file descriptors, but the limit is \(allowed): lower listen.max_in_flight or raise RLIMIT_NOFILE"
      )
    }
    let forwarder: Forwarder
    let web: WebServer?
    do throws(StartError) {
      forwarder = try Forwarder(
        loaded.configuration, inherited: try supervision.sockets(), logger: logger, recorder: loaded.log.recorder)
      forwarder.version = ProgramVersion.text
      let addresses = try forwarder.bind()
      for address in addresses { logger.info("listening on \(address)") }
      web = try MetricsAddress.open(loaded.configuration.web, forwarder, logger)
      supervision.begin(forwarder, addresses, logger)
    } catch {
      logger.critical("\(explain(error))")
      throw ExitCode.failure
    }
    let logControl = LogControl(loaded.log, forwarder)
    logControl.follow(loaded.configuration.log)
    let reloader = Reloader(forwarder, path: options.config, logger: logger)
    (reloader.willReload, reloader.didReload) = (supervision.reloads, supervision.hasReloaded)
    let reloadSignal = LoopEvent(on: forwarder.loop, signal: SIGHUP) { reloader.begin() }
    let operation = Operation(forwarder, reloader, web, file: FilePath.absolute(options.config), logger)
    let control = operation.openControlSocket(loaded.configuration.control)
    // The dashboard reads the statistics, for which the loop must run.
    forwarder.loop.inNextTurn { operation.follow(loaded.configuration) }
    // Weak, because it holds the reloader; releasing the control socket's server removes its path.
    reloader.didTake = { [weak operation] in
      logControl.follow($0.log)
      operation?.follow($0)
    }
    let signals = [SIGTERM, SIGINT].map { signal in
      LoopEvent(on: forwarder.loop, signal: signal) {
        logger.info("stopping")
        web?.endDashboard("The daemon stops.", again: true)
        forwarder.stop()
        supervision.end()
      }
    }
    // The first transfers set up TLS; most of the memory that they and the start needed is free afterwards.
    let memory = MemoryCare(on: forwarder.loop)
    forwarder.beforeFirstAnswer = memory.transfersBegin
    logger.info("ready")
    AnsweredSignals.release()
    do throws(StartError) {
      defer { withExtendedLifetime((signals, reloadSignal, logControl, operation, control, web, memory)) {} }
      try forwarder.run()
    } catch {
      logger.critical("\(explain(error))")
      throw ExitCode.failure
    }
    logger.info("stopped")
  }

  private func explain(_ error: StartError) -> String {
    switch error {
    case .other(let text): return text
    case .listen(let error): return RunCommand.explain(error)
    }
  }

  /// Why an address cannot be bound, which process holds it, and what to do.
  static func explain(_ error: ListenError) -> String {
    if error.code == EADDRNOTAVAIL, let address = IPAddress(octets: error.address.octets) {
      return "cannot listen on \(error.transport) \(error.address): no interface of this machine has \(address)"
    }
    var text = "cannot listen on \(error.reason)"
    if error.code == EADDRINUSE {
      let (address, transport) = (error.address, error.transport)
      text +=
        PortHolder.find(address, transport: transport).map { "; held by \($0)" }
        ?? "; `\(PortHolder.command(address, transport: transport))` shows which process holds it"
      // For example, systemd-resolved holds 127.0.0.53, and libvirt's dnsmasq the address of its bridge.
      if address.octets.allSatisfy({ $0 == 0 }) { text += PortHolder.adviceForWildcard(address, transport: transport) }
    }
    if error.code == EACCES { text += "; ports below 1024 need root or CAP_NET_BIND_SERVICE" }
    return text
  }
}

/// Signals that a running daemon handles or ignores; by default, they end a process.
enum AnsweredSignals {
  /// Blocks the signals in this thread and in the threads that it creates later.
  static func hold() { set(SIG_BLOCK) }

  /// Unblocks the signals in this thread, which then receives the pending ones.
  static func release() { set(SIG_UNBLOCK) }

  private static func set(_ what: Int32) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGHUP, SIGUSR1, SIGUSR2] { sigaddset(&signals, signal) }
    pthread_sigmask(what, &signals, nil)
  }
}

/// Returns free memory to the kernel after the start, and once a minute; otherwise a heap never shrinks.
private final class MemoryCare {
  private let loop: EventLoop
  private let (first, minutely) = (OwnedTimer(), OwnedTimer())

  init(on loop: EventLoop) {
    self.loop = loop
    minutely.set(after: .seconds(30), on: loop, for: self) {
      process_trim()
      $0.giveBack()
    }
  }

  /// The first transfers set up TLS; most of the memory that they needed is free afterwards.
  func transfersBegin() { first.set(after: .seconds(3), on: loop) { process_trim() } }

  private func giveBack() {
    minutely.set(after: .seconds(60), on: loop, for: self) {
      process_give_back(4 << 20)
      $0.giveBack()
    }
  }
}

/// Process-wide settings, made once, before there are threads.
enum Process {
  /// The minimum number of descriptors to request, because the estimate may be too low.
  private static let usualDescriptors = 65_536

  /// - Returns: the limit on open descriptors; negative if it is unknown.
  @discardableResult
  static func prepare(_ configuration: Configuration) -> Int {
    signal(SIGPIPE, SIG_IGN)
    // A file beyond RLIMIT_FSIZE is one that cannot be written, as on a full disk.
    signal(SIGXFSZ, SIG_IGN)
    // Other nameservers log their statistics on this signal; it must not end this one.
    signal(SIGUSR1, SIG_IGN)
    process_limit_heaps()
    process_use_bind_capability()
    return process_raise_descriptors(max(usualDescriptors, configuration.descriptorNeed))
  }
}
