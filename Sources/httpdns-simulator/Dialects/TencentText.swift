// TencentText.swift -- composes the text of Tencent's replies, by line: `name.:address;address,ttl-address,ttl|client`.

import DNSWire

/// A reply under construction, name by name.
struct TencentText {
  /// The client's address in the reply to `clientip=1`.
  var client: IPAddress?
  private let switches: TencentSwitches
  private let isBatch: Bool
  private let showsName: Bool
  private let showsTTL: Bool
  private let showsClient: Bool
  private var lines: [String] = []

  /// Creates an empty text in the form that the parameters request.
  init(_ switches: TencentSwitches, _ parameters: Parameters, isBatch: Bool) {
    self.switches = switches
    self.isBatch = isBatch
    showsName = isBatch || parameters["query"] == "1"
    showsTTL = parameters["ttl"] == "1"
    showsClient = parameters["clientip"] == "1"
  }

  /// Adds a name with one family or both.
  mutating func add(_ families: [AddressAnswer]) { lines.append(line(families)) }

  /// The whole text.
  var text: String {
    guard showsClient, let client else { return lines.joined(separator: "\n") }
    // Without addresses and a name there is no line for the client's address.
    guard lines != [""] else { return "" }
    switch switches.clientLines {
    case .every: return lines.map { "\($0)|\(client)" }.joined(separator: "\n")
    case .last: return "\(lines.joined(separator: "\n"))|\(client)"
    }
  }

  private func line(_ families: [AddressAnswer]) -> String {
    let name = families[0].name.text
    let parts = families.map(part)
    guard parts.count == 1 else {
      let both = parts.map { $0 ?? emptyHalf(families) }.joined(separator: "-")
      return showsName ? "\(name):\(both)" : both
    }
    guard let part = parts[0] else {
      // The document's example of a single name has no colon and no dot; that of a batch has both.
      return isBatch ? "\(name):0" : showsName ? String(name.dropLast()) : ""
    }
    return showsName ? "\(name):\(part)" : part
  }

  /// The family without addresses beside the other one.
  private func emptyHalf(_ families: [AddressAnswer]) -> String {
    guard switches.emptyHalf == .ttl, showsTTL, let ttl = families.compactMap(\.ttl).min() else { return "0" }
    return "0,\(ttl)"
  }

  private func part(_ answer: AddressAnswer) -> String? {
    guard !isWithheld(answer.type), let ttl = answer.ttl else { return nil }
    let addresses = answer.addresses.joined(separator: ";")
    return showsTTL ? "\(addresses),\(ttl)" : addresses
  }

  private func isWithheld(_ type: RecordType) -> Bool {
    switch switches.withheld {
    case .none: false
    case .ipv4: type == .a
    case .ipv6: type == .aaaa
    case .both: true
    }
  }
}
