// Service.swift -- what all dialects answer from: the zone, the accounts and the switches.

import DNSWire
import EventLoop

/// Where providers differ over time, or where their documents leave a choice.
struct ServiceOptions: Sendable {
  /// How far the service's clock is ahead of the machine's, in seconds.
  var clockOffset: Int64 = 0
  /// Refuse AliDNS requests without a signature.
  var requiresSignature = false
  /// How far `ts` of AliDNS may be from the service's clock, in seconds.
  var signatureWindow: Int64 = 600
  /// Cloudflare's names end with a dot, as its documents show and its service does not.
  var cloudflareFinalDot = false
  /// Cloudflare's RDATA of newer types is RFC 3597 text, as it was until 2026.
  var cloudflareGenericForm = false
  /// The Age field of RFC 8484 responses, in seconds; none without one.
  var age: UInt32?
  /// Names at and below which Tencent and EMAS say nothing, because the account's list does not have them.
  var notListed: [DomainName] = []
  var tencent = TencentSwitches()
  var emas = EMASSwitches()
  var table = TableSwitches()
}

/// Tencent's choices.
struct TencentSwitches: Sendable {
  /// Families that a reply may be without, whatever the zone has.
  enum Withheld: String, CaseIterable, Sendable {
    case none, ipv4, ipv6, both
  }
  /// What a request gets whose id, key, token or expiry is wrong: no document says.
  enum Refusal: String, CaseIterable, Sendable {
    case status, empty
  }
  /// On which lines of a batch the client's address stands.
  enum ClientLines: String, CaseIterable, Sendable {
    case every, last
  }

  /// A line feed ends the body.
  var appendsNewline = false
  /// Every body is empty.
  var isEmpty = false
  var withheld = Withheld.none
  var refusal = Refusal.status
  var clientLines = ClientLines.every
  /// Names in the clear are answered without any account, as the service that ended in 2022 did.
  var isFree = false
}

/// EMAS's choices.
struct EMASSwitches: Sendable {
  /// Refuse requests without a signature.
  var requiresSignature = false
  /// How much of their TTL v1's records have lost, in seconds.
  var age: UInt32 = 0
  /// Whether the account may send `sdns-` parameters.
  var supportsSDNS = true
  /// v2 writes `mode` as a number.
  var modeIsNumber = false
  /// What the scheduling call names; nothing stands for the simulator's own addresses.
  var serviceAddresses: [ServiceAddress] = []
  /// The scheduling call says that the account is switched off.
  var isDisabled = false
}

/// The self-built table's choices.
struct TableSwitches: Sendable {
  static let domainLimit = 200_000

  /// `enable` is 1.
  var isEnabled = true
  /// The label of the line.
  var service = "ISP-A"
  /// So many synthetic names instead of the zone's; 0 for the zone's.
  var domainCount = 0
  /// IPv6 addresses stand behind the IPv4 ones: the format says nothing about them.
  var includesIPv6 = false
}

/// The simulated service; a value, so that a dialect's reply depends on nothing else.
struct Service: Sendable {
  var zone: Zone
  var accounts: [Account] = []
  var tencent = TencentAccount()
  var emas = EMASAccount()
  var options = ServiceOptions()
  /// Where the simulator serves plain HTTP.
  var plainAddresses: [SocketAddress] = []
  /// Where it serves HTTPS.
  var secureAddresses: [SocketAddress] = []

  /// The zone's answer, or, for a distorted transfer, what has become of it.
  func answer(_ question: Question, for transfer: Transfer) -> ZoneAnswer {
    let answer = zone.answer(question)
    return transfer.distortion.map { answer.distorted($0) } ?? answer
  }
}
