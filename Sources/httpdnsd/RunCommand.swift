// RunCommand.swift -- `httpdnsd run`: serves until SIGTERM or SIGINT; SIGHUP reads the configuration anew.

import ArgumentParser
import CProcess
import Configuration
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
      Signals: SIGTERM and SIGINT answer what is in flight, for two seconds at most, and stop; SIGHUP reloads the \
      configuration as `httpdnsd reload` does, and the log has the result; SIGUSR2 writes the last debug lines to the log; \
      SIGUSR1 and SIGPIPE do nothing.

      Variables: HTTPDNSD_CONFIG names the configuration file, HTTPDNSD_LISTEN, HTTPDNSD_PROVIDER and the others of \
      httpdnsd.toml(5) take the place of its keys; systemd's LISTEN_FDS, NOTIFY_SOCKET, WATCHDOG_USEC and \
      CREDENTIALS_DIRECTORY are used; SSLKEYLOGFILE is not.

      Example: httpdnsd run --config /etc/httpdnsd/httpdnsd.toml
      Example: HTTPDNSD_LISTEN=127.0.0.1:5300 httpdnsd run --config /dev/null

      Exit code 0: it was told to stop; 1: a mistake in the configuration, or it cannot listen; 64: a mistake on the \
      command line.
      """)

  /// Milliseconds for which the end waits for who reads the log.
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
        "\(need) descriptors may be needed and \(allowed) are allowed: lower listen.max_in_flight or raise RLIMIT_NOFILE"
      )
    }
    let forwarder: Forwarder
    let web: WebServer?
    do throws(StartError) {
      forwarder = try Forwarder(
        loaded.configuration, inherited: try supervision.sockets(), logger: logger, recorder: loaded.log.recorder)
      let addresses = try forwarder.bind()
      for address in addresses { logger.info("listening on \(address)") }
      web = try MetricsAddress.open(loaded.configuration.web, forwarder, logger)
      supervision.begin(forwarder, addresses, logger)
    } catch {
      logger.critical("\(explain(error))")
      throw ExitCode.failure
    }
    let logService = LogService(loaded.log, forwarder)
    logService.follow(loaded.configuration.log)
    let reloader = Reloader(forwarder, path: options.config, logger: logger)
    reloader.didTake = { logService.follow($0.log) }
    (reloader.willReload, reloader.didReload) = (supervision.reloads, supervision.hasReloaded)
    let reloadSignal = LoopEvent(on: forwarder.loop, signal: SIGHUP) { reloader.begin() }
    let control = ControlSocket.open(
      loaded.configuration.control, forwarder, reloader, file: FilePath.absolute(options.config), logger)
    let signals = [SIGTERM, SIGINT].map { signal in
      LoopEvent(on: forwarder.loop, signal: signal) {
        logger.info("stopping")
        forwarder.stop()
        supervision.end()
      }
    }
    // Once the first transfers have set up TLS, much of what the start needed is not needed again.
    forwarder.loop.schedule(after: .seconds(30)) {
      process_trim()
      giveBackMemory(on: forwarder.loop)
    }
    logger.info("ready")
    AnsweredSignals.release()
    do throws(StartError) {
      defer { withExtendedLifetime((signals, reloadSignal, logService, control, web)) {} }
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

  /// Why an address cannot be had, who has it, and what would help.
  static func explain(_ error: ListenError) -> String {
    if error.code == EADDRNOTAVAIL, let address = IPAddress(octets: error.address.octets) {
      return "cannot listen on \(error.transport) \(error.address): no interface of this machine has \(address)"
    }
    var text = "cannot listen on \(error.reason)"
    if error.code == EADDRINUSE {
      let (address, transport) = (error.address, error.transport)
      text +=
        PortHolder.find(address, transport: transport).map { "; held by \($0)" }
        ?? "; `\(PortHolder.command(address, transport: transport))` shows who holds it"
      // systemd-resolved has 127.0.0.53, libvirt's dnsmasq an address of its bridge.
      if address.octets.allSatisfy({ $0 == 0 }) { text += PortHolder.adviceForWildcard(address, transport: transport) }
    }
    if error.code == EACCES { text += "; ports below 1024 need root or CAP_NET_BIND_SERVICE" }
    return text
  }
}

/// Signals that a running daemon answers or ignores, and that end a program which has not said so yet.
enum AnsweredSignals {
  /// Lets them wait from now on: for this thread, and for those that it makes.
  static func hold() { set(SIG_BLOCK) }

  /// This thread takes those that have waited, and all that come.
  static func release() { set(SIG_UNBLOCK) }

  private static func set(_ what: Int32) {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGHUP, SIGUSR1, SIGUSR2] { sigaddset(&signals, signal) }
    pthread_sigmask(what, &signals, nil)
  }
}

/// What bursts have left behind goes back once a minute: a heap that was large once would stay so.
private func giveBackMemory(on loop: EventLoop) {
  loop.schedule(after: .seconds(60)) {
    process_give_back(4 << 20)
    giveBackMemory(on: loop)
  }
}

/// What the process sets once, before it has threads.
enum Process {
  /// Descriptors that are asked for at least: what is needed may be more than what was thought of.
  private static let usualDescriptors = 65_536

  /// Makes the process ready for a configuration.
  ///
  /// - Returns: how many descriptors may be open; negative where that is not known.
  @discardableResult
  static func prepare(_ configuration: Configuration) -> Int {
    signal(SIGPIPE, SIG_IGN)
    // Other nameservers tell their statistics by it: it is not to end this one.
    signal(SIGUSR1, SIG_IGN)
    process_limit_heaps()
    process_use_bind_capability()
    return process_raise_descriptors(max(usualDescriptors, configuration.descriptorNeed))
  }
}
