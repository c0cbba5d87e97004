// ProviderServer.swift -- one server of a provider; one given by name is found by plain DNS before it is asked.
//
// Resolver's loop only. `getaddrinfo` is never called: on the machine whose nameserver this is, it would ask itself.

import DNSWire
import EventLoop
import HTTPClient
import LocalDNS

/// A server and the transport to it.
final class ProviderServer: CustomStringConvertible {
  /// Makes the transport to a server at those addresses.
  typealias Connect = ([IPAddress]) -> (any HTTPTransport)?

  /// The address or name, for people.
  let description: String
  private let connect: Connect
  private let lookUp: HostLookUp?
  private var transport: (any HTTPTransport)?
  private var addresses: [IPAddress] = []

  /// A server at fixed addresses.
  init(_ description: String, addresses: [IPAddress], connect: @escaping Connect) {
    self.description = description
    self.connect = connect
    self.addresses = addresses
    lookUp = nil
    transport = connect(addresses)
  }

  /// A server that is found by its name.
  init(_ description: String, lookUp: HostLookUp, connect: @escaping Connect) {
    self.description = description
    self.connect = connect
    self.lookUp = lookUp
  }

  /// The transport, once the server's addresses are known; nil where they cannot be found within `timeout`.
  func transport(timeout: Duration) async -> (any HTTPTransport)? {
    guard let lookUp else { return transport }
    if let found = await lookUp.addresses(timeout: timeout), found != addresses {
      addresses = found
      transport = connect(found)
    }
    return transport
  }
}

/// Finds a host's addresses by plain DNS and keeps them for as long as their TTL says.
final class HostLookUp {
  private let name: DomainName
  private let servers: () -> [SocketAddress]
  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let types: [RecordType]
  private var found: [IPAddress] = []
  private var expires = BootInstant(nanoseconds: .min)
  private var isLooking = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// Seconds that addresses are kept, whatever their TTL.
  private static let shortestLifetime: UInt32 = 60
  /// How long after a failure the next attempt may begin.
  private static let pauseAfterFailure = Duration.seconds(1)

  /// - Parameter servers: the plain resolvers to ask, as they are at the time.
  init(
    _ name: DomainName, types: [RecordType], client: any LocalDNSTransport, loop: any Loop,
    servers: @escaping () -> [SocketAddress]
  ) {
    self.name = name
    self.types = types
    self.client = client
    self.loop = loop
    self.servers = servers
  }

  /// The addresses; the old ones where there are no new ones, nil where there never were any.
  func addresses(timeout: Duration) async -> [IPAddress]? {
    if loop.now >= expires {
      if isLooking {
        if found.isEmpty { await withCheckedContinuation { waiting.append($0) } }
      } else {
        await look(timeout: timeout)
      }
    }
    return found.isEmpty ? nil : found
  }

  private func look(timeout: Duration) async {
    isLooking = true
    let end = loop.now + timeout
    var addresses: [IPAddress] = []
    var lowest = UInt32.max
    for type in types where loop.now < end {
      let reply = await client.ask(
        Question(name: name, type: type), dnssecOK: false, checkingDisabled: false, servers: servers(),
        timeout: end - loop.now)
      guard case .success(let message) = reply else { continue }
      for record in message.answers where record.type == type {
        guard let address = IPAddress(octets: record.rdata) else { continue }
        addresses.append(address)
        lowest = min(lowest, record.ttl)
      }
    }
    if addresses.isEmpty {
      expires = loop.now + HostLookUp.pauseAfterFailure
    } else {
      found = addresses
      expires = loop.now + .seconds(Int64(max(lowest, HostLookUp.shortestLifetime)))
    }
    isLooking = false
    for continuation in waiting { continuation.resume() }
    waiting = []
  }
}
