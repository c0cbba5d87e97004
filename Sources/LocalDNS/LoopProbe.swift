// LoopProbe.swift -- finds out which resolvers send our own queries back to us.
//
// A server whose address is not ours may be one that forwards to us. It is asked for a name that nobody else knows; if
// that name then comes in at our listener, every query that it could not answer by itself would go round in a circle.

import DNSWire
import EventLoop

/// The names that were asked, and the servers that they belong to. Pure; one for as long as the program runs.
public struct LoopProbe: Sendable {
  /// `<16 random hexadecimal digits>.example`: what is asked for at or below it belongs to `server`. Nobody has such a name,
  /// and yet resolvers send it on (RFC 6761 section 6.5), which those do not that answer `test` by themselves.
  public let zone: DomainName

  private var servers: [Int: SocketAddress] = [:]
  private var nextIndex = 0

  /// A name on its way.
  public struct Probe: Sendable {
    /// Who is asked.
    public let server: SocketAddress
    /// For what.
    public let question: Question
  }

  /// A probe with a zone of its own, drawn at random.
  public init() { self.init(token: .random(in: .min ... .max)) }

  /// A probe with a given zone.
  init(token: UInt64) {
    let digits = String(token, radix: 16)
    zone = DomainName(text: String(repeating: "0", count: 16 - digits.count) + digits + ".example")!
  }

  /// Names to ask of some servers, none of which was used before; names of earlier calls are forgotten.
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

  /// No name means anything any more: for when the probes had their time, since a name that comes in later says nothing of
  /// the network as it is then.
  public mutating func forget() { servers = [:] }

  /// The server that was asked for this name, and which thus leads back to whoever received it; nil for any other name. Case
  /// does not matter: some forwarders mix it (draft-vixie-dnsext-dns0x20).
  public func server(for name: DomainName) -> SocketAddress? {
    guard name.parent == zone, let index = LoopProbe.index(label: name.octets[1...Int(name.octets[0])]) else {
      return nil
    }
    return servers[index]
  }

  /// The number of a label `s<number>` as `begin` writes it.
  private static func index(label: ArraySlice<UInt8>) -> Int? {
    guard label.first.map(asciiLowercase) == UInt8(ascii: "s"), label.dropFirst().first != UInt8(ascii: "+") else {
      return nil
    }
    return Int(String(decoding: label.dropFirst(), as: UTF8.self))
  }

  /// Asks all servers at the same time, and ignores what they say. Returns when each has answered or had its time; a name
  /// that leads back has come in by then.
  ///
  /// - Parameter timeout: for each server. One that is silent for half of it is asked once more.
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
