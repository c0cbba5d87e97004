// Service.swift -- the state that all dialects use: the zone, the accounts and the settings.

import DNSWire
import EventLoop

/// Options for behaviour that changed over time, or that the providers' documents leave open.
struct ServiceOptions: Sendable {
  /// Seconds by which the service's clock is ahead of the system clock.
  var clockOffset: Int64 = 0
  /// Whether AliDNS requests without a signature are refused.
  var requiresSignature = false
  /// Maximum difference between `ts` of AliDNS and the service's clock, in seconds.
  var signatureWindow: Int64 = 600
  /// Whether Cloudflare's names end with a dot: its documents show one, its service sends none.
  var cloudflareFinalDot = false
  /// Whether Cloudflare's RDATA of newer types is RFC 3597 text, as it was until 2026.
  var cloudflareGenericForm = false
  /// The Age field of RFC 8484 responses, in seconds; nil sends none.
  var age: UInt32?
  /// Names that are not on the account's list: services with an account return nothing at and below them.
  var notListed: [DomainName] = []
  /// The reply of AliDNS to a wrong signature, which no document defines.
  enum AliDNSRefusal: String, CaseIterable, Sendable {
    case status, code
    case success = "code-200"
  }
  var aliDNSRefusal = AliDNSRefusal.status
  var tencent = TencentSwitches()
  var emas = EMASSwitches()
  var baidu = BaiduSwitches()
  var volcengine = VolcengineSwitches()
  var jdcloud = JDCloudSwitches()
  var ucloud = UCloudSwitches()
  var table = TableSwitches()
}

/// Options of Tencent's service.
struct TencentSwitches: Sendable {
  /// Families that replies omit even if the zone has addresses.
  enum Withheld: String, CaseIterable, Sendable { case none, ipv4, ipv6, both }
  /// The reply to a wrong id, key, token or expiry, which no document defines.
  enum Refusal: String, CaseIterable, Sendable { case status, empty }
  /// The lines of a batch that have the client's address.
  enum ClientLines: String, CaseIterable, Sendable { case every, last }

  /// How a reply with both families writes the one without addresses.
  enum EmptyHalf: String, CaseIterable, Sendable { case zero, ttl }

  /// Whether the body ends with a line feed.
  var appendsNewline = false
  /// Whether every body is empty.
  var isEmpty = false
  var withheld = Withheld.none
  var refusal = Refusal.status
  var clientLines = ClientLines.every
  /// Whether names in clear text need no account, as in the service that ended in 2022.
  var isFree = false
  var emptyHalf = EmptyHalf.zero
  /// Whether a request has to say until when it is valid.
  var requiresExpiry = false
}

/// Options of EMAS's service.
struct EMASSwitches: Sendable {
  /// Whether requests without a signature are refused.
  var requiresSignature = false
  /// Seconds by which the TTLs in v1's replies have decreased.
  var age: UInt32 = 0
  /// Whether the account may send `sdns-` parameters.
  var supportsSDNS = true
  /// Whether v2's `mode` is a number instead of a string.
  var modeIsNumber = false
  /// The addresses in the scheduling call's reply; empty for the simulator's own addresses.
  var serviceAddresses: [ServiceAddress] = []
  /// Whether the scheduling call reports that the account is switched off.
  var isDisabled = false
  /// Whether the scheduling call lists no address.
  var hasNoServers = false
  /// Whether a batch of v1 has `type` only if the request has `query`.
  var hasTypeWithQuery = false
  /// Whether a batch is in the reverse order.
  var isReversed = false
  /// Whether v1's elements without addresses have a long `ttl` and no `origin_ttl`.
  var hasEmptyTTL = false
  /// Whether IPv6 addresses are written without `::`.
  var hasLongIPv6 = false
  /// Whether replies lack what the documents call optional.
  var isSparse = false

  func text(_ address: String) -> String {
    guard hasLongIPv6, let parsed = IPAddress(text: address), parsed.isIPv6 else { return address }
    let octets = parsed.octets
    return stride(from: 0, to: 16, by: 2).map { index in
      let group = String(UInt16(octets[index]) << 8 | UInt16(octets[index + 1]), radix: 16)
      return String(repeating: "0", count: 4 - group.count) + group
    }.joined(separator: ":")
  }
}

/// Options of the self-hosted table.
struct TableSwitches: Sendable {
  static let domainLimit = 200_000

  /// Whether `enable` is 1.
  var isEnabled = true
  /// The value of `service`, a label.
  var service = "ISP-A"
  /// The number of synthetic names to list; 0 lists the zone's names.
  var domainCount = 0
  /// Whether IPv6 addresses follow the IPv4 addresses, which the format does not define.
  var includesIPv6 = false
}

/// The simulated service. A value, so that a dialect's reply depends on nothing else.
struct Service: Sendable {
  var zone: Zone
  var accounts: [Account] = []
  var tencent = TencentAccount()
  var emas = EMASAccount()
  /// The accounts with one secret, by the name of their dialect.
  var secretAccounts = Service.standardAccounts
  var options = ServiceOptions()
  /// The simulator's addresses for plain HTTP.
  var plainAddresses: [SocketAddress] = []
  /// The simulator's addresses for HTTPS.
  var secureAddresses: [SocketAddress] = []

  private static let standardAccounts = Dictionary(
    uniqueKeysWithValues: allDialects.compactMap { dialect in dialect.account.map { (dialect.name, $0) } })

  /// Returns the zone's answer, with the distortion of the transfer if there is one.
  func answer(_ question: Question, for transfer: DialectRequest) -> ZoneAnswer {
    let answer = zone.answer(question)
    return transfer.distortion.map { answer.distorted($0) } ?? answer
  }
}
