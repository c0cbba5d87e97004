// ServerSchedule.swift -- a provider that tells its clients which servers to ask: finds out, remembers, asks again.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import Logging
import Persistence

/// Where a list of servers comes from, in a provider's dialect.
protocol ServerListSource: Sendable {
  /// The transfer that asks for the list.
  func request(unixTime: Int64) -> TransferRequest
  /// What the reply says: the servers, none where the service is switched off, and how long that counts.
  func list(from response: TransferResponse) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration)
}

/// Keeps the list of a provider's servers.
final class ServerSchedule: @unchecked Sendable {
  private let source: any ServerListSource
  private let bootServers: [ProviderServer]
  /// The file's first line: a list of another account, transport or region is not taken for this one's.
  private let firstLine: String
  private let file: StateFile?
  private let timeout: Duration
  private let loop: any Loop
  private let note: ProviderNote
  /// Told of each new list; an empty one switches the provider off.
  var onList: ([ListedServer]) -> Void = { _ in }
  private var isStarted = false
  private var servers: [ListedServer] = []
  private var refreshing: Task<Void, Never>?
  private let waiters: Waiters
  private var timer: LoopTimer?
  private var failures = 0
  private var lastAsked: BootInstant?
  /// Why the list could not be had the last time, for people; nil where it could.
  private(set) var problem: String?

  /// The pause after a failure, which doubles …
  private static let firstPause = Duration.seconds(10)
  /// … up to this.
  private static let longestPause = Duration.seconds(3600)
  /// How soon after the last time the list is asked for because every server has failed.
  private static let shortestPause = Duration.seconds(30)
  private static let largestFile = 16 * 1024

  /// - Parameters:
  ///   - identity: what the list depends on, in one line.
  ///   - bootServers: who is asked for the list, in order.
  ///   - file: where the list is kept beyond the program's life.
  init(
    _ source: any ServerListSource, identity: String, bootServers: [ProviderServer], file: StateFile?,
    timeout: Duration, loop: any Loop,
    note: @escaping ProviderNote
  ) {
    self.source = source
    self.bootServers = bootServers
    firstLine = "httpdnsd servers 1 \(identity)"
    self.file = file
    self.timeout = timeout
    self.loop = loop
    waiters = Waiters(on: loop)
    self.note = note
  }

  deinit { timer?.cancel() }

  /// Takes the list that was kept, and asks for the present one.
  func start() {
    guard !isStarted else { return }
    isStarted = true
    let kept = parse(file?.read(limit: ServerSchedule.largestFile) ?? [])
    if !kept.isEmpty { take(kept) }
    refresh()
  }

  /// Starts, and waits for the first list where none was kept, but not beyond that time.
  func ready(by deadline: BootInstant) async {
    start()
    if servers.isEmpty, refreshing != nil { await waiters.wait(atMost: deadline - loop.now) }
  }

  /// Every server of the list has failed: the list may be old.
  func allHaveFailed() {
    guard isStarted, loop.now - (lastAsked ?? loop.now) >= ServerSchedule.shortestPause else { return }
    refresh()
  }

  /// The network is another one: the servers that are near may be others.
  func networkHasChanged() {
    for server in bootServers { server.networkHasChanged() }
    if isStarted { refresh() }
  }

  private func refresh() {
    guard refreshing == nil else { return }
    timer?.cancel()
    lastAsked = loop.now
    refreshing = Task(executorPreference: loop) { [self] in
      let pause = await ask()
      refreshing = nil
      waiters.resumeAll()
      timer = loop.schedule(after: pause) { [weak self] in self?.refresh() }
    }
  }

  /// Asks the servers that a client begins with; how long to wait until the next time.
  private func ask() async -> Duration {
    var (reason, remedy) = ("no server to ask for the list of servers", "")
    for server in bootServers {
      guard let transport = await server.transport(timeout: timeout) else {
        (reason, remedy) = ("\(server): \(ProviderServer.notFound)", "")
        continue
      }
      let request = source.request(unixTime: loop.wallTime)
      switch await transport.send(HTTPRequest(request, headers: []), timeout: timeout) {
      case .failure(let failure):
        server.connectionFailed(now: loop.now)
        (reason, remedy) = ("\(server): \(failure)", "")
      case .response(let response):
        do throws(HTTPDNSFailure) {
          let (servers, lifetime) = try source.list(from: TransferResponse(response))
          failures = 0
          problem = nil
          if servers.isEmpty { note(.warning, "the provider's list of servers says that the service is switched off") }
          if servers != self.servers || servers.isEmpty { take(servers) }
          file?.save(text(of: servers))
          return lifetime
        } catch { (reason, remedy) = ("\(server): \(error)", error.blame == .account ? "; \(error.remedy)" : "") }
      }
    }
    problem = reason
    failures += 1
    let pause = min(ServerSchedule.firstPause * (1 << min(failures - 1, 16)), ServerSchedule.longestPause)
    note(
      .warning,
      "no list of the provider's servers: \(reason); asked for again in \(pause.components.seconds) s\(remedy)")
    return pause
  }

  private func take(_ servers: [ListedServer]) {
    self.servers = servers
    onList(servers)
  }

  private func text(of servers: [ListedServer]) -> [UInt8] {
    var text = firstLine + "\n"
    for server in servers {
      let port = server.port.map { "\($0)" } ?? "-"
      switch server.host {
      case .address(let address): text += "\(address) \(port)\n"
      case .name(let name): text += "\(name) \(port)\n"
      }
    }
    return Array(text.utf8)
  }

  private func parse(_ octets: [UInt8]) -> [ListedServer] {
    let lines = String(decoding: octets, as: UTF8.self).split(separator: "\n")
    guard lines.first.map(String.init) == firstLine else { return [] }
    return lines.dropFirst().compactMap { line in
      let fields = line.split(separator: " ").map(String.init)
      guard fields.count == 2, fields[1] == "-" || (UInt16(fields[1]) ?? 0) > 0 else { return nil }
      if let address = IPAddress(text: fields[0]) { return ListedServer(.address(address), port: UInt16(fields[1])) }
      return DomainName(text: fields[0]).map { ListedServer(.name($0), port: UInt16(fields[1])) }
    }
  }
}

extension EMASSchedule: ServerListSource {
  func request(unixTime: Int64) -> TransferRequest { request }

  func list(from response: TransferResponse) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
    switch try outcome(from: response) {
    case .servers(let servers): (servers, EMASSchedule.refreshInterval)
    case .disabled: ([], EMASSchedule.retryInterval)
    }
  }
}

/// The list that Alibaba Cloud DNS publishes as SRV records; whoever asks is nobody's account.
struct AliDNSServerList: ServerListSource {
  private let dialect: AliDNSDialect

  /// The account under which the provider's own programs ask for the list.
  private static let account = "uid=9999"

  init(path: String, isEncrypted: Bool) {
    let path = path + (path.contains("?") ? "&" : "?") + AliDNSServerList.account
    dialect = AliDNSDialect(credential: nil, isEncrypted: isEncrypted, path: path)
  }

  func request(unixTime: Int64) -> TransferRequest { dialect.request(for: ServerList.question, unixTime: unixTime) }

  func list(from response: TransferResponse) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
    guard let list = ServerList(try dialect.answer(to: ServerList.question, from: response)) else {
      throw .unreadable(.shape)
    }
    return (list.servers, .seconds(list.lifetime))
  }
}
