// TableProvider.swift -- a self-built table as a provider: read or fetched now and then, it answers at once.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import Glibc
import HTTPClient
import HTTPDNS
import Logging
import Persistence
import Telemetry

/// A table of names and addresses that somebody keeps himself.
final class TableProvider: Upstream, @unchecked Sendable {
  /// Where a table comes from.
  enum Source {
    /// A file, which is watched.
    case file(String)
    /// Servers, in order, and the path to ask them for.
    case servers([ProviderServer], target: String, host: String?)
  }

  let name: String
  let trustsAD = false
  let knowsDNSSECFlags = false
  let answersAtOnce = true
  let timeout: Duration
  private let source: Source
  private let interval: Duration
  private let ttl: UInt32
  private let loop: any Loop
  private let note: ProviderNote
  private let watch: (String, @escaping () -> Void) -> AnyObject?
  /// The table that answers now.
  private(set) var table: AddressTable?
  /// The file or the server that the table is from.
  private(set) var origin = ""
  /// How often it was read or fetched, and what came of that.
  var counters = ProviderCounters()
  private var entityTag: String?
  /// Why the table could not be read or fetched the last time, for people; nil where it could.
  private(set) var problem: String?
  private var loading: Task<Void, Never>?
  private let waiters: Waiters
  private var timer: LoopTimer?
  private var fileWatch: AnyObject?
  private var isStarted = false
  /// Whether a load has ended, well or not: who asks before that waits for it.
  private var hasLoaded = false
  /// How often the file was read.
  private var readings = 0

  /// How long after a failure a server is asked again, where that is less than the interval.
  private static let retryAfter = Duration.seconds(30)

  /// - Parameters:
  ///   - watch: makes a watch on a file that lives as long as what it returns.
  ///   - note: told in one line what a person should know.
  init(
    name: String, _ source: Source, timeout: Duration, interval: Duration, ttl: UInt32, loop: any Loop,
    watch: @escaping (String, @escaping () -> Void) -> AnyObject?, note: @escaping ProviderNote
  ) {
    self.name = name
    self.source = source
    self.timeout = timeout
    self.interval = interval
    self.ttl = ttl
    self.loop = loop
    waiters = Waiters(on: loop)
    self.watch = watch
    self.note = note
  }

  deinit { timer?.cancel() }

  func subnet(for client: IPPrefix?) -> IPPrefix? { nil }

  /// Addresses of listed names. As long as no table has come, it may turn out to list any name.
  func serves(_ question: HTTPDNSQuestion) -> Bool {
    guard question.type == .a || question.type == .aaaa else { return false }
    return table == nil || answer(to: question) != nil
  }

  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    start()
    if !hasLoaded { await waiters.wait(atMost: deadline - loop.now) }
    guard let answer = answer(to: question) else { return .failure(table == nil ? noTable : .notListed) }
    return .success(UpstreamAnswer(answer, server: origin))
  }

  private var noTable: UpstreamFailure {
    UpstreamFailure(
      .noReachableAuthority, "there is no table yet" + (problem.map { ": \($0)" } ?? ""), .network)
  }

  /// Reads or fetches the table, and from now on keeps it fresh.
  func start() {
    guard !isStarted else { return }
    isStarted = true
    switch source {
    case .file(let path):
      fileWatch = watch(path) { [weak self] in self?.read(path) }
      read(path)
      // Where the folder cannot be watched, the file is looked at now and then.
      if fileWatch == nil { poll(path) }
    case .servers: load()
    }
  }

  var serverAddresses: [IPAddress] {
    guard case .servers(let servers, _, _) = source else { return [] }
    return servers.flatMap(\.addresses)
  }

  /// The table may be another one there: it is fetched again.
  func networkHasChanged() {
    guard case .servers(let servers, _, _) = source, isStarted else { return }
    for server in servers { server.networkHasChanged() }
    load()
  }

  private func answer(to question: HTTPDNSQuestion) -> HTTPDNSAnswer? {
    guard let table, table.isEnabled else { return nil }
    return table.answer(to: question, ttl: ttl)
  }

  private func poll(_ path: String) {
    timer = loop.schedule(after: interval) { [weak self] in
      self?.read(path)
      self?.poll(path)
    }
  }

  private func read(_ path: String) {
    readings += 1
    guard let octets = StateFile(path: path, onFailure: { _ in }).read(limit: AddressTable.mostOctets) else {
      hasLoaded = true
      let problem = access(path, R_OK) == 0 ? nil : String(cString: strerror(errno))
      return keep(
        because: "\(path): \(problem ?? "not a file, or longer than \(AddressTable.mostOctets) octets")")
    }
    guard octets.count > TableReading.mostHere else {
      hasLoaded = true
      do throws(AddressTableFault) {
        take(try AddressTable(text: octets), from: path)
      } catch { keep(because: "\(path): \(error)") }
      return
    }
    let number = readings
    Task(executorPreference: loop) { [self] in
      let outcome = await TableReading.outcome(of: octets.count, on: loop) { () throws(AddressTableFault) in
        try AddressTable(text: octets)
      }
      // The file has been read again since.
      guard number == readings else { return }
      hasLoaded = true
      switch outcome {
      case .success(let table): take(table, from: path)
      case .failure(let fault): keep(because: "\(path): \(fault)")
      }
      waiters.resumeAll()
    }
  }

  private func load() {
    guard loading == nil, case .servers(let servers, let target, let host) = source else { return }
    loading = Task(executorPreference: loop) { [self] in
      let isFresh = await fetch(servers, target, host)
      loading = nil
      hasLoaded = true
      waiters.resumeAll()
      let pause = isFresh ? interval : min(interval, TableProvider.retryAfter)
      timer = loop.schedule(after: pause) { [weak self] in self?.load() }
    }
  }

  /// Asks one server after the other; whether one of them has said what counts now.
  private func fetch(_ servers: [ProviderServer], _ target: String, _ host: String?) async -> Bool {
    var headers: [HTTPField] = [HTTPField("Accept", "application/json")]
    if let host { headers.append(HTTPField("Host", host)) }
    if table != nil, let entityTag { headers.append(HTTPField("If-None-Match", entityTag)) }
    var reason = "no server"
    for server in servers {
      guard let transport = await server.transport(timeout: timeout) else {
        reason = "\(server): \(ProviderServer.notFound)"
        continue
      }
      counters.transfers += 1
      let begin = loop.now
      let outcome = await transport.send(HTTPRequest(target: target, headers: headers), timeout: timeout)
      if case .response = outcome { counters.roundTrips.observe(loop.now - begin) }
      switch outcome {
      case .failure(let failure):
        server.connectionFailed(now: loop.now)
        counters.failures.count(TransferFailureReason(failure.kind))
        reason = "\(server): \(failure)"
      case .response(let response) where response.status == 304 && table != nil:
        if let table { take(table, from: "\(server)") }
        return true
      case .response(let response):
        let reply = TransferResponse(response)
        let outcome = await TableReading.outcome(of: reply.body.count, on: loop) { () throws(AddressTableFault) in
          try AddressTable(reply)
        }
        switch outcome {
        case .success(let fresh):
          take(fresh, from: "\(server)")
          entityTag = response.entityTag
          return true
        case .failure(let error):
          counters.failures.count(response.status == 200 ? .unreadable : .status)
          reason = "\(server): \(error)"
        }
      }
    }
    keep(because: reason)
    return false
  }

  private func take(_ fresh: AddressTable, from origin: String) {
    let isNews = table == nil || problem != nil || table?.isEnabled != fresh.isEnabled
    let old = table
    (table, problem, self.origin) = (fresh, nil, origin)
    TableReading.free(old)
    guard isNews else { return }
    if !fresh.isEnabled {
      note(.warning, "provider \(name): its table is switched off")
    } else {
      note(.info, "provider \(name): a table of \(fresh.count) names")
    }
  }

  private func keep(because reason: String) {
    guard problem != reason else { return }
    problem = reason
    note(.warning, "provider \(name): \(reason); \(table == nil ? "there is no table yet" : "the old table is kept")")
  }
}
