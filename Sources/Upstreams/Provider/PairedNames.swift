// PairedNames.swift -- fetches both address families of a name in one transfer once clients ask for both.

import DNSWire
import HTTPDNS

/// Names that clients ask for in both address families. Only for these, a transfer asks for both.
struct PairedNames {
  private var seen: [DomainName: UInt8] = [:]
  private static let most = 10_000

  /// Records a question; returns whether both families of its name had been asked for before.
  mutating func note(_ question: HTTPDNSQuestion) -> Bool {
    let bit: UInt8 = question.type == .a ? 1 : 2
    let before = seen[question.name] ?? 0
    if before | bit != before {
      if before == 0, seen.count >= PairedNames.most { seen = [:] }
      seen[question.name] = before | bit
    }
    return before == 3
  }
}
