// Service.swift -- what all dialects answer from: the zone, the accounts and the switches.

import DNSWire

/// Where providers differ over time, or where their documents leave a choice.
struct ServiceOptions: Sendable {
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
}

/// The simulated service; a value, so that a dialect's reply depends on nothing else.
struct Service: Sendable {
  var zone: Zone
  var accounts: [Account] = []
  var options = ServiceOptions()

  /// The name that a distorted reply is about.
  static let wrongName = DomainName(text: "wrong-question.example.net.")!

  /// The zone's answer, or, for a distorted transfer, the same answer under another name.
  func answer(_ question: Question, for transfer: Transfer) -> ZoneAnswer {
    var answer = zone.answer(question)
    guard transfer.isDistorted else { return answer }
    answer.question.name = Service.wrongName
    for index in answer.records.indices where answer.records[index].owner == question.name {
      answer.records[index].owner = Service.wrongName
    }
    return answer
  }
}
