// EncryptedSide.swift -- the encrypted listeners of a forwarder: their thread, and the files that change while it runs.
//
// Resolver's loop only, or while it does not run.

import Configuration
import DNSWire
import EventLoop
import Files
import Frontend
import Listener
import Logging
import Persistence
import ServiceManager
import Streams
import Telemetry

/// Has the listeners' thread, and gives it certificates and tokens as they change. Exists only with an encrypted listener.
final class EncryptedSide {
  let thread: EncryptedThread
  private let counters: EncryptedCounters
  /// The addresses that it listens on, with the ports that the kernel chose for port 0.
  let addresses: [ListeningAddress]
  private let loop: EventLoop
  private let logger: Logger
  private var encrypted: Configuration.Encrypted
  /// What is in use.
  private(set) var files: EncryptedFiles
  /// The policy of the present tables, without tokens.
  private var policy: EncryptedPolicy
  private var watch: PathWatch?
  private var isReading = false
  private var mustReadAgain = false
  /// What the log said last about files that cannot be used.
  private var faults = EncryptedFiles.Faults()
  private let warningTimer = OwnedTimer()

  /// A file that is written in several steps counts when it has not changed for that long.
  private static let quiet = Duration.seconds(2)
  /// How often the log has what clients refuse.
  private static let warningPause = Duration.seconds(86_400)

  /// Reads the files, and listens; `start` serves.
  ///
  /// - Throws: `StartError.listen` if an address cannot be bound, `StartError.other` if a file cannot be used. An IPv6 address
  ///   that the machine does not have is only logged.
  init(
    _ encrypted: Configuration.Encrypted, _ policy: EncryptedPolicy, _ surroundings: EncryptedFrontend.Surroundings,
    on loop: EventLoop, _ logger: Logger
  ) throws(StartError) {
    let files: EncryptedFiles
    do throws(EncryptedFiles.Faults) { files = try EncryptedFiles(encrypted) } catch {
      throw .other(error.lines.joined(separator: "; "))
    }
    var first = policy
    first.tokens = files.tokens
    var addresses: [ListeningAddress] = []
    thread = try EncryptedThread { loop throws(StartError) in
      let frontend = EncryptedFrontend(
        first,
        TCPLimits(connections: encrypted.connections, perClient: encrypted.perClient, idle: encrypted.idle),
        certificate: files.pair, surroundings, on: loop)
      let services: [(EncryptedFrontend.Service, [Endpoint])] = [
        (.dot, encrypted.dot), (.doh, encrypted.doh), (.dohPlain, encrypted.dohPlain),
      ]
      for (service, endpoints) in services {
        for address in SocketAddress.existing(endpoints, logger) {
          do throws(ListenError) {
            let bound = try frontend.listen(on: address, as: service)
            addresses.append(ListeningAddress(address: bound, service: service.rawValue))
          } catch {
            guard error.isMissingIPv6 else { throw .listen(error) }
            logger.warning("not listening on \(error.reason)")
          }
        }
      }
      guard !addresses.isEmpty else { throw .other("none of the addresses in encrypted exists on this machine") }
      return frontend
    }
    self.addresses = addresses
    self.encrypted = encrypted
    self.files = files
    self.policy = policy
    self.loop = loop
    self.logger = logger
    counters = surroundings.connectionCounters
  }

  /// Starts the thread.
  ///
  /// - Throws: `StartError.other` if the system allows no more threads.
  func start() throws(StartError) { try thread.start() }

  /// Follows the files from now on. The loop must be running.
  func follow() {
    watchFiles()
    warn()
    // They may have changed since the start has read them.
    read()
  }

  /// What the listeners have done so far.
  var report: EncryptedReport { EncryptedReport(totals: counters.totals, certificateEnd: files.pair?.end) }

  /// Switches to other tables and settings.
  ///
  /// - Parameter renewal: what a reload has read; nil if only the tables have changed.
  func use(_ policy: EncryptedPolicy, _ encrypted: Configuration.Encrypted, _ renewal: EncryptedFiles.Renewal?) {
    self.policy = policy
    let paths = EncryptedSide.paths(self.encrypted)
    self.encrypted = encrypted
    guard let renewal else { return offer() }
    // It is used in any case, since it belongs to the settings.
    var mayHaveChanged = renewal.replaced != files.number
    use(renewal)
    if paths != EncryptedSide.paths(encrypted) {
      watchFiles()
      mayHaveChanged = true
    }
    if mayHaveChanged { read() }
  }

  private func offer() {
    var policy = policy
    policy.tokens = files.tokens
    thread.offer(policy)
  }

  // MARK: - Files

  private static func paths(_ encrypted: Configuration.Encrypted) -> [String] {
    [encrypted.certificateFile, encrypted.keyFile, encrypted.tokensFile].compactMap { $0 }
  }

  private func watchFiles() {
    watch = nil
    let paths = EncryptedSide.paths(encrypted)
    guard !paths.isEmpty else { return }
    watch = PathWatch(paths, on: loop, quiet: EncryptedSide.quiet) { [weak self] in self?.read() }
    guard watch == nil else { return }
    logger.warning("encrypted: the kernel does not report changes of files; reload the daemon after a renewal")
  }

  /// Reads the files on another thread. Those in use stay if others cannot be used.
  private func read() {
    guard !isReading else {
      mustReadAgain = true
      return
    }
    isReading = true
    let (encrypted, files, now) = (encrypted, files, loop.wallTime)
    loop.startTask { [self] in
      take(await BlockingTask.value("certificates", on: loop) { files.renewed(encrypted, at: now) })
    }
  }

  private func take(_ new: EncryptedFiles.Renewal) {
    isReading = false
    // Otherwise a reload came before it, perhaps with other paths.
    let isCurrent = new.replaced == files.number
    if isCurrent { use(new) }
    guard mustReadAgain || !isCurrent else { return }
    mustReadAgain = false
    read()
  }

  private func use(_ renewal: EncryptedFiles.Renewal) {
    let before = faults
    faults = renewal.faults
    for line in faults.lines where !before.lines.contains(line) { logger.error("\(line)") }
    let (old, new) = (files, renewal.files)
    files = new
    files.number = old.number + 1
    offer()
    if let pair = new.pair, !pair.isEqual(old.pair) {
      thread.use(pair)
      logger.info("encrypted: new certificate in use, valid until \(LogTime.text(unixTime: pair.end))")
      warn()
    } else if before.pair != nil, faults.pair == nil {
      logger.info("encrypted.certificate_file: in use again")
    }
    if new.tokens == old.tokens {
      if before.tokens != nil, faults.tokens == nil { logger.info("encrypted.tokens_file: in use again") }
    } else if let tokens = new.tokens {
      logger.info("encrypted: \(tokens.labels.count) \(tokens.labels.count == 1 ? "token" : "tokens") in use")
    } else {
      logger.info("encrypted: clients need no token")
    }
  }

  /// Says what clients refuse, or soon will, now and once a day.
  private func warn() {
    for warning in files.warnings(at: loop.wallTime) {
      logger.log(level: files.pair?.state(at: loop.wallTime) == .expired ? .error : .warning, "\(warning)")
    }
    warningTimer.set(after: EncryptedSide.warningPause, on: loop, for: self) { $0.warn() }
  }
}

extension EncryptedPolicy {
  /// Nil without encrypted listeners. Asks the kernel for the networks of `"connected"`.
  init?(_ configuration: Configuration, _ tables: QueryTables, _ newConnections: RateLimits) {
    let encrypted = configuration.encrypted
    guard encrypted.hasListeners else { return nil }
    func site(isPlain: Bool) -> DoHSite {
      DoHSite(
        path: encrypted.path, hasJSON: encrypted.json, name: encrypted.name,
        addresses: (encrypted.dot + encrypted.doh + encrypted.dohPlain).map(\.address) + encrypted.published,
        isPlain: isPlain)
    }
    self.init(
      tables: tables.serving(AccessPolicy(configuration.encryptedClients.now, for: .encrypted)),
      site: site(isPlain: false), plainSite: site(isPlain: true), name: encrypted.name,
      proxies: encrypted.proxyProtocol, forwarders: encrypted.forwardedFrom,
      newConnections: newConnections.table(perSecond: encrypted.newPerSecond))
  }
}
