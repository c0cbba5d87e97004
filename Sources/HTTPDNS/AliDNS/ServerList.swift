// ServerList.swift -- reads the servers that Alibaba Cloud DNS publishes for its clients as SRV records.

import Configuration
import DNSWire
import HTTPMessage

/// The list at `auto.sdk.alidns.com`: SRV records (RFC 2782) whose targets are not host names. The last label of a
/// target states what the rest encodes (github.com/aliyun/alibaba-pdns-sdk-c): `192.0.2.53.ipv4.`,
/// `2001-db8--53.ipv6.`, `dns.example.com.domain.`.
///
/// Listed servers take precedence over configured servers, which remain as a last resort.
public struct ServerList: Hashable, Sendable {
  /// The question for the list. The public service answers it without a signature.
  public static let question = HTTPDNSQuestion(name: DomainName(text: "auto.sdk.alidns.com")!, type: .srv)

  /// Maximum servers of each kind: IPv4 addresses, IPv6 addresses, names.
  static let mostOfAKind = 8
  /// Minimum lifetime of a list in seconds.
  static let shortestLifetime: UInt32 = 60

  /// The servers, by priority and then by weight. There is at least one.
  public let servers: [ListedServer]
  /// Lifetime of the list in seconds: its TTL, but at least a minute.
  public let lifetime: UInt32

  /// Reads the list in an answer to `question`.
  ///
  /// - Throws: `.unreadable(.noServers)` if it has no usable server.
  public init(_ answer: HTTPDNSAnswer) throws(HTTPDNSFailure) {
    let records = answer.answers.filter { $0.type == .srv }
    let entries = records.compactMap { Entry($0.rdata) }
    var counts: [Entry.Kind: Int] = [:]
    var servers: [ListedServer] = []
    // `sorted` is stable, so equal entries stay in the provider's order.
    for entry in entries.sorted(by: { ($0.priority, $1.weight) < ($1.priority, $0.weight) })
    where !servers.contains(entry.server) && counts[entry.kind, default: 0] < ServerList.mostOfAKind {
      counts[entry.kind, default: 0] += 1
      servers.append(entry.server)
    }
    guard answer.responseCode == .noError, !servers.isEmpty, let lifetime = records.first?.ttl else {
      throw .unreadable(.noServers(answer.responseCode))
    }
    self.servers = servers
    self.lifetime = max(lifetime, ServerList.shortestLifetime)
  }

  /// One SRV record.
  private struct Entry {
    enum Kind: Hashable { case ipv4, ipv6, name }

    let priority: UInt16
    let weight: UInt16
    let kind: Kind
    let server: ListedServer

    /// Nil unless the target has one of the three forms and the port is not 0.
    init?(_ rdata: [UInt8]) {
      guard rdata.count > 6, let target = DomainName(octets: Array(rdata[6...])) else { return nil }
      let numbers = [0, 2, 4].map { UInt16(rdata[$0]) << 8 | UInt16(rdata[$0 + 1]) }
      let port = numbers[2]
      guard port > 0, let (kind, host) = Entry.host(target) else { return nil }
      (priority, weight) = (numbers[0], numbers[1])
      self.kind = kind
      server = ListedServer(host, port: port)
    }

    private static func host(_ target: DomainName) -> (Kind, Host)? {
      guard target.isPlain, !target.isRoot else { return nil }
      let text = plainText(of: target)
      guard let dot = text.lastIndex(of: ".") else { return nil }
      let stem = text[..<dot]
      switch text[text.index(after: dot)...] {
      case "ipv4":
        guard let address = IPAddress(text: stem), !address.isIPv6 else { return nil }
        return (.ipv4, .address(address))
      case "ipv6":
        let colons = String(stem.map { $0 == "-" ? ":" : $0 })
        guard let address = IPAddress(text: colons), address.isIPv6 else { return nil }
        return (.ipv6, .address(address))
      case "domain":
        guard let name = DomainName(text: stem) else { return nil }
        return (.name, .name(name))
      default: return nil
      }
    }
  }
}

/// Requests the list. No client's account is involved.
public struct AliDNSServerList: ServerListSource {
  private let dialect: AliDNSDialect

  /// The account that the provider's own software uses to request the list.
  private static let account = "uid=9999"

  /// - Parameters:
  ///   - path: that of questions; begins with `/`.
  ///   - isEncrypted: whether transfers use HTTPS.
  public init(path: String, isEncrypted: Bool) {
    let path = path + (path.contains("?") ? "&" : "?") + AliDNSServerList.account
    dialect = AliDNSDialect(account: nil, isEncrypted: isEncrypted, path: path)
  }

  /// False: every server has the service's name.
  public var hasOwnHosts: Bool { false }

  /// A question for SRV records, unsigned.
  public func request(unixTime: Int64) -> HTTPRequest { dialect.request(for: ServerList.question, unixTime: unixTime) }

  public func list(
    from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
    let list = try ServerList(dialect.answer(to: ServerList.question, from: response))
    return (list.servers, .seconds(list.lifetime))
  }
}
