// TableProvider.swift -- a self-built table as a provider: read or fetched periodically, it answers at once.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import Logging
import Telemetry

/// A provider that answers from a table of names and addresses that the operator maintains.
final class TableProvider: ConfiguredUpstream {
  /// The origin of a table.
  enum Source {
    /// A file, which the daemon watches.
    case file(String)
    /// Servers in order of preference, and the path to request.
    case servers([ProviderServer], target: String, host: String?)
  }

  private let settings: Configuration.Provider
  let name: String
  let traits: UpstreamTraits
  private let source: Source
  private let interval: Duration
  private let ttl: UInt32
  let loop: any Loop
  private let note: ProviderNote
  private let watch: (String, @escaping () -> Void) -> AnyObject?
  /// The current table; nil before the first one is loaded.
  private(set) var table: AddressTable?
  /// The file or the server that the current table comes from.
  private(set) var origin = ""
  /// Counters of the fetches.
  let counters: SharedProviderCounters
  private var entityTag: String?
  /// Why the last read or fetch failed, human-readable; nil if it succeeded.
  private(set) var problem: String?
  /// What helps against the problem, human-readable; empty without a problem, or if nothing is known.
  private(set) var remedy = ""
  private var loading: Task<Void, Never>?
  private let waiters: Waiters
  let timer = OwnedTimer()
  private var fileWatch: AnyObject?
  private var isStarted = false
  /// Whether a load has ended, successfully or not. Before that, callers wait for it.
  private var hasLoaded = false
  /// The number of reads of the file, which shows whether a result is outdated.
  private var readings = 0

  /// The pause after a failed fetch, if shorter than the interval.
  private static let retryAfter = Duration.seconds(30)

  /// - Parameters:
  ///   - settings: names the provider and, in remedies, its keys.
  ///   - watch: creates a file watch, which lives as long as the returned object.
  ///   - note: logs one line for the operator.
  init(
    _ settings: Configuration.Provider, _ source: Source, interval: Duration, ttl: UInt32, loop: any Loop,
    counters: SharedProviderCounters = SharedProviderCounters(),
    watch: @escaping (String, @escaping () -> Void) -> AnyObject?, note: @escaping ProviderNote
  ) {
    name = settings.name
    var traits = UpstreamTraits(timeout: settings.timeout)
    traits.answersAtOnce = true
    self.traits = traits
    self.settings = settings
    self.counters = counters
    self.source = source
    self.interval = interval
    self.ttl = ttl
    self.loop = loop
    waiters = Waiters(on: loop)
    self.watch = watch
    self.note = note
  }

  let pace = UpstreamPace.prompt
  /// It is never waited for.
  let medianRoundTrip: Duration? = nil

  /// Whether the table lists addresses for the question. Before the first table is loaded, any name may be listed.
  func serves(_ question: HTTPDNSQuestion) -> Bool {
    guard question.type == .a || question.type == .aaaa else { return false }
    return table == nil || answer(to: question) != nil
  }

  func isFit(for question: HTTPDNSQuestion) -> Bool { serves(question) }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    start()
    if !hasLoaded { await waiters.wait(atMost: deadline - loop.now) { !hasLoaded } }
    guard let table else { return .failure(noTable) }
    guard let answer = answer(to: question) else {
      return .failure(.absent(table.isEnabled ? .notListed : .switchedOff))
    }
    return .success(UpstreamAnswer(answer: answer, server: origin))
  }

  func reasonToSkip(_ question: HTTPDNSQuestion, mayFallBack: Bool, isInUse: () -> Bool) -> UpstreamFailure? { nil }

  /// What answers at once is not refreshed.
  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    .failure(.unserved)
  }

  func forgetNotListed(_ names: NameSelection) -> Int { 0 }

  /// No question of a client is a transfer, and no verdict comes after a silence.
  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void) {}

  /// It bills nothing.
  func share(units: (any UnitSharing)?) {}

  /// Its timer ends with it.
  func retire(for heir: (any ConfiguredUpstream)?) {}

  private var noTable: UpstreamFailure {
    var failure = UpstreamFailure.absent(.notLoaded, problem.map { ": \($0)" } ?? "")
    failure.advice = remedy
    return failure
  }

  /// Loads the table and starts to refresh it.
  func start() {
    loop.assertCurrent()
    guard !isStarted else { return }
    isStarted = true
    switch source {
    case .file(let path):
      fileWatch = watch(path) { [weak self] in self?.read(path) }
      read(path)
      // If the folder cannot be watched, poll the file.
      if fileWatch == nil { poll(path) }
    case .servers: load()
    }
  }

  var serverAddresses: [IPAddress] {
    guard case .servers(let servers, _, _) = source else { return [] }
    return servers.flatMap(\.addresses)
  }

  /// Fetches the table again after a change of network, since the new network may serve another one.
  func networkHasChanged() {
    loop.assertCurrent()
    guard case .servers(let servers, _, _) = source, isStarted else { return }
    for server in servers { server.networkHasChanged() }
    load()
  }

  private func answer(to question: HTTPDNSQuestion) -> HTTPDNSAnswer? {
    guard let table, table.isEnabled else { return nil }
    return table.answer(to: question, ttl: ttl)
  }

  private func poll(_ path: String) {
    timer.set(after: interval, on: loop, for: self) {
      $0.read(path)
      $0.poll(path)
    }
  }

  private func read(_ path: String) {
    readings += 1
    let size = TableFile.size(path)
    guard size > TableReading.mostHere else {
      hasLoaded = true
      do throws(TableFile.Fault) {
        take(try TableFile.table(path), from: path)
      } catch { keepOldTable(because: error.text) }
      return
    }
    let number = readings
    loop.startTask { [self] in
      let outcome = await TableReading.outcome(of: size, on: loop) { () throws(TableFile.Fault) in
        try TableFile.table(path)
      }
      // A newer read of the file has started.
      guard number == readings else { return }
      hasLoaded = true
      switch outcome {
      case .success(let table): take(table, from: path)
      case .failure(let fault): keepOldTable(because: fault.text)
      }
      waiters.resumeAll()
    }
  }

  private func load() {
    guard loading == nil, case .servers(let servers, let target, let host) = source else { return }
    loading = loop.startTask { [self] in
      let isFresh = await fetch(servers, target, host)
      loading = nil
      hasLoaded = true
      waiters.resumeAll()
      let pause = isFresh ? interval : min(interval, TableProvider.retryAfter)
      timer.set(after: pause, on: loop, for: self) { $0.load() }
    }
  }

  /// Asks the servers in order; returns whether one of them confirmed or replaced the table.
  private func fetch(_ servers: [ProviderServer], _ target: String, _ host: String?) async -> Bool {
    var fields: [HTTPField] = [HTTPField("Accept", "application/json")]
    if let host { fields.append(HTTPField("Host", host)) }
    if table != nil, let entityTag { fields.append(HTTPField("If-None-Match", entityTag)) }
    var (reason, remedy) = ("no server", "")
    for server in servers {
      guard let transport = await server.transport(timeout: settings.timeout) else {
        (reason, remedy) = ("\(server): \(ProviderServer.notFound)", "")
        continue
      }
      let begin = loop.now
      let outcome = await transport.send(HTTPRequest(target: target, fields: fields), timeout: settings.timeout)
      counters.values.transfers += outcome.timesSent
      if case .response = outcome { counters.values.roundTrips.observe(loop.now - begin) }
      switch outcome {
      case .failure(let failure):
        server.connectionFailed(now: loop.now)
        counters.values.failures.count(.noResponse(failure.kind))
        (reason, remedy) = ("\(server): \(failure)", failure.remedy(settings))
      case .response(let response) where response.status == 304 && table != nil:
        if let table { take(table, from: "\(server)") }
        return true
      case .response(let response):
        let outcome = await TableReading.outcome(of: response.body.count, on: loop) { () throws(AddressTableFault) in
          try AddressTable(response)
        }
        switch outcome {
        case .success(let fresh):
          take(fresh, from: "\(server)")
          entityTag = response.entityTag
          return true
        case .failure(let error):
          counters.values.failures.count(.noAnswer(response.status == 200 ? .unreadable : .server))
          let text = response.status == 200 ? "\(error)" : response.explanation(of: error.failure, settings.kind)
          reason = "\(server): \(text)"
          remedy = error.failure.isRefusal ? error.failure.remedy(settings) : ""
        }
      }
    }
    keepOldTable(because: reason, remedy)
    return false
  }

  private func take(_ fresh: AddressTable, from origin: String) {
    let isNew = table == nil || problem != nil || table?.isEnabled != fresh.isEnabled
    (table, problem, remedy, self.origin) = (fresh, nil, "", origin)
    guard isNew else { return }
    if !fresh.isEnabled {
      note(.warning, "provider \(name): \(TableAbsence.switchedOff.text)")
    } else {
      note(.info, "provider \(name): a table of \(fresh.count) \(fresh.count == 1 ? "name" : "names")")
    }
  }

  private func keepOldTable(because reason: String, _ remedy: String = "") {
    guard problem != reason else { return }
    (problem, self.remedy) = (reason, remedy)
    let kept = table == nil ? "no table yet" : "keeping the old table"
    note(.warning, "provider \(name): \(reason); \(kept)\(remedy.isEmpty ? "" : "; \(remedy)")")
  }
}
