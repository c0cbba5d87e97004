// NAT64.swift -- how IPv4 is reached from a network that has IPv6 only: the prefix of its NAT64.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS

/// The NAT64 of the current network (RFC 6052), and the prefix by which it reaches IPv4 addresses.
package final class NAT64 {
  /// The prefix; nil if the network has no NAT64, or if it is not needed.
  package private(set) var prefix: NAT64Prefix?
  /// Called when the prefix or the need for it has changed.
  package var changed: () -> Void = {}
  private let loop: any Loop
  private let client: any LocalDNSTransport
  /// The network's resolvers, whatever `localdns.servers` lists: the prefix is theirs (RFC 7050).
  private let servers: () -> [PlainResolver]
  private var setting = Configuration.DNS64.off
  private var hasIPv4Route = true
  /// Whether the machine has a route to IPv6 alone.
  private var isIPv6Only = false
  private var asking: Task<Void, Never>?
  private let timer = OwnedTimer()
  /// Counts networks, so that the answer of an earlier one is not used.
  private var network = 0
  private var failures = 0

  /// Its AAAA records are those that a NAT64's resolver makes (RFC 7050 section 2.2).
  private static let question = HTTPDNSQuestion(name: DomainName(text: "ipv4only.arpa")!, type: .aaaa)
  private static let timeout = Duration.seconds(2)
  /// The pause after a look-up without a reply, which doubles up to the longest one.
  private static let firstPause: Int64 = 10
  private static let shortestPause: Int64 = 60
  private static let longestPause: Int64 = 3600

  /// - Parameter servers: returns the network's current resolvers.
  package init(_ client: any LocalDNSTransport, on loop: any Loop, servers: @escaping () -> [PlainResolver]) {
    self.client = client
    self.loop = loop
    self.servers = servers
  }

  /// Follows `names.dns64`.
  package func follow(_ setting: Configuration.DNS64) {
    guard setting != self.setting else { return }
    self.setting = setting
    begin()
  }

  /// The network or its resolvers have changed.
  package func networkIs(hasIPv4Route: Bool, hasIPv6Route: Bool) {
    loop.assertCurrent()
    let wasDirect = self.hasIPv4Route
    (self.hasIPv4Route, isIPv6Only) = (hasIPv4Route, hasIPv6Route && !hasIPv4Route)
    begin()
    if wasDirect != hasIPv4Route, prefix != nil { changed() }
  }

  /// The addresses under which these are reached: IPv4 ones by the prefix, where there is no route to them.
  package func reach(_ addresses: [IPAddress]) -> [IPAddress] {
    guard !hasIPv4Route, let prefix else { return addresses }
    return addresses.map { $0.isIPv6 || $0.isLoopback ? $0 : prefix.address(of: $0) }
  }

  private func begin() {
    network += 1
    asking = nil
    timer.cancel()
    failures = 0
    switch setting {
    case .off: use(nil)
    case .prefix(let prefix): use(prefix)
    case .auto where isIPv6Only: ask()
    case .auto: use(nil)
    }
  }

  private func use(_ prefix: NAT64Prefix?) {
    guard prefix != self.prefix else { return }
    self.prefix = prefix
    changed()
  }

  private func ask() {
    let (number, servers) = (network, servers())
    guard !servers.isEmpty else { return use(nil) }
    asking = loop.startTask { [self] in
      let reply = await client.ask(
        Question(name: NAT64.question.name, type: .aaaa), dnssecOK: false, checkingDisabled: false, servers: servers,
        timeout: NAT64.timeout)
      guard number == network else { return }
      asking = nil
      timer.set(after: .seconds(take(try? reply.get().message)), on: loop, for: self) { $0.ask() }
    }
  }

  /// Takes an answer; returns the seconds until the next question.
  private func take(_ message: Message?) -> Int64 {
    guard let message, let answer = try? HTTPDNSAnswer(message, to: NAT64.question) else {
      failures += 1
      return min(NAT64.firstPause << min(Int64(failures) - 1, 16), NAT64.longestPause)
    }
    failures = 0
    let found = answer.answers.filter { $0.type == .aaaa }
    use(found.lazy.compactMap { IPAddress(octets: $0.rdata) }.compactMap { NAT64Prefix(of: $0) }.first)
    let ttl = found.map(\.ttl).min() ?? answer.negativeTTL ?? UInt32(NAT64.longestPause)
    return min(max(Int64(ttl), NAT64.shortestPause), NAT64.longestPause)
  }
}
