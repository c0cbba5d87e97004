// LoopProbe.swift -- detects resolvers that forward our own queries back to us.
//
// A server with an address that is not ours may still forward to us. The probe queries it for a name that no other
// client knows. If that name arrives at our listener, every query that the server cannot answer itself would loop.

import DNSWire
import EventLoop

/// The names of the probes and their servers. Does no I/O except in `send`; the daemon uses one instance for its whole
/// life.
public struct LoopProbe: Sendable {
  /// `<16 random hexadecimal digits>.example`. Names below it identify a server. No such name exists, but resolvers
  /// forward queries for it (RFC 6761 section 6.5). A name below `test` would not do, because some resolvers answer it
  /// themselves.
  public let zone: DomainName

  private var servers: [Int: SocketAddress] = [:]
  private var nextIndex = 0

  /// A query for one server.
  public struct Probe: Sendable {
    /// The server to query.
    public let server: SocketAddress
    /// The question, of which the name identifies the server.
    public let question: Question
  }

  /// Creates a probe with a random zone.
  public init() { self.init(token: .random(in: .min ... .max)) }

  /// Creates a probe with a given zone.
  init(token: UInt64) {
    let digits = String(token, radix: 16)
    zone = DomainName(text: String(repeating: "0", count: 16 - digits.count) + digits + ".example")!
  }

  /// Returns probes for servers, with names that were never used before. Names of earlier calls become invalid.
  public mutating func begin(_ servers: [SocketAddress]) -> [Probe] {
    self.servers = [:]
    return servers.map { server in
      let index = nextIndex
      nextIndex += 1
      self.servers[index] = server
      let label = Array("s\(index)".utf8)
      return Probe(
        server: server,
        question: Question(name: DomainName(unchecked: [UInt8(label.count)] + label + zone.octets), type: .txt))
    }
  }

  /// Invalidates all names. Call it when the time of the probes has expired, because a name that arrives later says
  /// nothing about the network at that time.
  public mutating func forget() { servers = [:] }

  /// The server that was queried for this name, and which therefore forwards to the receiver; nil for any other name.
  /// Ignores case, because some forwarders mix it (draft-vixie-dnsext-dns0x20).
  public func server(for name: DomainName) -> SocketAddress? {
    guard name.parent == zone, let index = LoopProbe.index(label: name.octets[1...Int(name.octets[0])]) else {
      return nil
    }
    return servers[index]
  }

  /// The number in a label `s<number>` from `begin`.
  private static func index(label: ArraySlice<UInt8>) -> Int? {
    guard label.first.map(asciiLowercase) == UInt8(ascii: "s"), label.dropFirst().first != UInt8(ascii: "+") else {
      return nil
    }
    return Int(String(decoding: label.dropFirst(), as: UTF8.self))
  }

  /// Queries all servers in parallel and ignores their responses. Returns when each has responded or its time has
  /// expired; a name that loops has arrived by then.
  ///
  /// - Parameter timeout: for each server. The query is sent once more at half of it.
  public static func send(_ probes: [Probe], by transport: any LocalDNSTransport, timeout: Duration) async {
    await withDiscardingTaskGroup { group in
      for probe in probes {
        group.addTask {
          _ = await transport.ask(
            probe.question, dnssecOK: false, checkingDisabled: false, servers: [probe.server], timeout: timeout)
        }
      }
    }
  }
}
