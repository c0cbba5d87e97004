// ServerSchedule.swift -- fetches, stores and refreshes the list of servers that a provider publishes for its clients.
//
// A list that TLS has authenticated is stored, and used until another one comes: it is better than none if the service that
// gives lists is down. Any other list may be forged, with any lifetime. It is never stored, and once its lifetime, an hour at
// most, is over without a successor, the configured servers replace it.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import Logging
import Persistence

/// Maintains the list of a provider's servers.
final class ServerSchedule {
  private let source: any ServerListSource
  private let provider: Configuration.Provider
  private let bootServers: [ProviderServer]
  /// The first line of the file. It identifies account, transport and region, so that no other list is used by mistake.
  private let firstLine: String
  /// Nil if lists are not authenticated.
  private let file: StateFile?
  private let isAuthenticated: Bool
  private let timeout: Duration
  private let loop: any Loop
  private let note: ProviderNote
  /// Called with each new list; an empty list switches the provider off. Nil if the last one has expired.
  var onList: ([ListedServer]?) -> Void = { _ in }
  /// Seconds by which the provider's clock, which signatures need, is ahead of the machine's.
  var clockOffset: () -> Int64 = { 0 }
  /// Called with a refusal that may be due to the time of its request: it may correct that clock.
  var onRefusal: (HTTPResponse, ProviderServer) -> Void = { _, _ in }
  private var isStarted = false
  private var servers: [ListedServer] = []
  /// When the list in use expires; nil if it does not, or if there is none.
  private var expiry: BootInstant?
  private var refreshing: Task<Void, Never>?
  private let timer = OwnedTimer()
  private var failures = 0
  private var lastAsked: BootInstant?

  /// What helps if the list says that the service is switched off, human-readable.
  static let remedyIfSwitchedOff = "switch it on in the provider's console, and check account_id"
  /// The pause after a failure. It doubles with each failure …
  private static let firstPause = Duration.seconds(10)
  /// … up to this limit.
  private static let longestPause = Duration.seconds(3600)
  /// The minimum time since the last attempt before a failure of all servers triggers another.
  private static let shortestPause = Duration.seconds(30)
  /// The reason for the pause if the list says that the service is switched off, human-readable.
  static let switchedOffText = "its list of servers says that the service is switched off"
  /// The maximum lifetime of a list that is not authenticated.
  private static let longestUnauthenticated = Duration.seconds(3600)
  private static let largestFile = 16 * 1024

  /// - Parameters:
  ///   - provider: names the keys in remedies.
  ///   - identity: one line with everything that the list depends on.
  ///   - bootServers: the servers that are asked for the list, in order. Until it has come, they are the provider's.
  ///   - file: stores the list across restarts, if each boot server is authenticated.
  init(
    _ source: any ServerListSource, of provider: Configuration.Provider, identity: String,
    bootServers: [ProviderServer], file: StateFile?, timeout: Duration, loop: any Loop, note: @escaping ProviderNote
  ) {
    self.source = source
    self.provider = provider
    self.bootServers = bootServers
    firstLine = "httpdnsd servers 1 \(identity)"
    isAuthenticated = bootServers.allSatisfy(\.isVerified)
    self.file = isAuthenticated ? file : nil
    self.timeout = timeout
    self.loop = loop
    self.note = note
  }

  /// Uses the stored list and requests the current one.
  func start() {
    loop.assertCurrent()
    guard !isStarted else { return }
    isStarted = true
    let saved = admitted(parse(file?.read(limit: ServerSchedule.largestFile) ?? []))
    if !saved.isEmpty { take(saved) }
    refresh()
  }

  /// Refreshes the list after all of its servers have failed, since it may be outdated.
  func allHaveFailed() {
    loop.assertCurrent()
    guard isStarted, loop.now - (lastAsked ?? loop.now) >= ServerSchedule.shortestPause else { return }
    refresh()
  }

  /// Refreshes the list after a change of network, since other servers may be closer.
  func networkHasChanged() {
    loop.assertCurrent()
    for server in bootServers { server.networkHasChanged() }
    if isStarted { refresh() }
  }

  private func refresh() {
    guard refreshing == nil else { return }
    timer.cancel()
    lastAsked = loop.now
    refreshing = loop.startTask { [self] in
      let pause = await ask()
      refreshing = nil
      timer.set(after: pause, on: loop, for: self) { $0.refresh() }
    }
  }

  /// Asks the boot servers in order; returns the time to wait before the next attempt.
  private func ask() async -> Duration {
    var (reason, remedy) = ("no server to ask for the list of servers", "")
    for server in bootServers {
      guard let transport = await server.transport(timeout: timeout) else {
        (reason, remedy) = ("\(server): \(ProviderServer.notFound)", "")
        continue
      }
      switch await outcome(of: server, transport) {
      case .unreachable(let failure):
        server.connectionFailed(now: loop.now)
        (reason, remedy) = ("\(server): \(failure)", failure.remedy(provider))
      case .list(let servers, let lifetime):
        failures = 0
        if servers.isEmpty {
          note(.warning, "\(ServerSchedule.switchedOffText); \(ServerSchedule.remedyIfSwitchedOff)")
        }
        if servers != self.servers || servers.isEmpty { take(servers) }
        file?.save(text(of: servers))
        if isAuthenticated { return lifetime }
        let bound = min(lifetime, ServerSchedule.longestUnauthenticated)
        expiry = loop.now + bound
        // Time for a second attempt before the list expires.
        return bound * 5 / 6
      case .refused(let response, let error):
        reason = "\(server): \(response.explanation(of: error, provider.kind))"
        remedy = error.isRefusal || error.isOfAccount ? error.remedy(provider) : ""
      }
    }
    failures += 1
    var pause = min(ServerSchedule.firstPause * (1 << min(failures - 1, 16)), ServerSchedule.longestPause)
    var use = ""
    if let expiry, loop.now >= expiry {
      drop()
      use = "; the last one has expired, and the configured servers are used"
    } else if let expiry {
      pause = min(pause, max(expiry - loop.now, .seconds(1)))
    }
    note(
      .warning,
      "no list of the provider's servers: \(reason)\(use); asked for again in \(pause.components.seconds) s"
        + (remedy.isEmpty ? "" : "; \(remedy)"))
    return pause
  }

  /// What came of a request for the list.
  private enum Outcome {
    case list([ListedServer], lifetime: Duration)
    case refused(HTTPResponse, HTTPDNSFailure)
    case unreachable(HTTPFailure)
  }

  /// Requests the list; once more if the refusal has corrected the clock and the request depends on it.
  private func outcome(of server: ProviderServer, _ transport: any HTTPTransport) async -> Outcome {
    let offset = clockOffset()
    let request = source.request(unixTime: loop.wallTime + offset)
    let first = await send(request, to: server, transport)
    guard case .refused(let response, let error) = first, error.mayBeTheClock else { return first }
    onRefusal(response, server)
    let repetition = source.request(unixTime: loop.wallTime + clockOffset())
    guard clockOffset() != offset, repetition != request else { return first }
    return await send(repetition, to: server, transport)
  }

  /// Sends a request for the list.
  private func send(
    _ request: HTTPRequest, to server: ProviderServer, _ transport: any HTTPTransport
  ) async -> Outcome {
    switch await transport.send(request, timeout: timeout) {
    case .failure(let failure): return .unreachable(failure)
    case .response(let response):
      do throws(HTTPDNSFailure) {
        let (listed, lifetime) = try source.list(from: response)
        let servers = admitted(listed)
        guard listed.isEmpty || !servers.isEmpty else { throw .unreadable(.noServers(.noError)) }
        return .list(servers, lifetime: lifetime)
      } catch { return .refused(response, error) }
    }
  }

  /// Leaves out servers on this machine or its link, unless the list may lead here.
  private func admitted(_ servers: [ListedServer]) -> [ListedServer] {
    servers.filter { bootServers.mayLeadHere || $0.mayBeRemote }
  }

  private func take(_ servers: [ListedServer]) {
    self.servers = servers
    onList(servers)
  }

  private func drop() {
    (servers, expiry) = ([], nil)
    onList(nil)
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

extension [ProviderServer] {
  /// Whether a list that these servers give may lead to this machine: only if all of them are known to be on it themselves.
  /// The addresses of a server given by name are known once it has been asked.
  var mayLeadHere: Bool {
    !isEmpty && allSatisfy { !$0.addresses.isEmpty && $0.addresses.allSatisfy(\.isLoopback) }
  }
}
