// AddressAnswer.swift -- the answer of a service that only returns addresses, for one name and family.

import DNSWire

/// The addresses of one family at one name.
struct AddressAnswer: Sendable {
  /// The name in the reply.
  let name: DomainName
  /// A or AAAA.
  let type: RecordType
  /// The addresses as text, in the zone's order.
  var addresses: [String] = []
  /// The lowest TTL of the chain and the addresses; nil without addresses.
  var ttl: UInt32?
  /// Distinguishes NXDOMAIN from NODATA if there are no addresses.
  var code = ResponseCode.noError
  /// Whether the name is on the account's list; if not, the reply has nothing for it.
  var isListed = true
}

extension Service {
  /// Whether the name is on the account's list.
  func isListed(_ name: DomainName) -> Bool { !options.notListed.contains { name.isAtOrBelow($0) } }

  /// Returns the addresses at a name, if it is on the account's list.
  func addresses(of name: DomainName, _ type: RecordType, for transfer: DialectRequest) -> AddressAnswer {
    let answer = answer(Question(name: name, type: type), for: transfer)
    guard isListed(name) else {
      return AddressAnswer(name: answer.question.name, type: type, isListed: false)
    }
    let addresses = answer.records.filter { $0.type == type }.map(\.text)
    return AddressAnswer(
      name: answer.question.name, type: type, addresses: addresses,
      ttl: addresses.isEmpty ? nil : answer.records.map(\.ttl).min(), code: answer.code)
  }
}

/// Parses a comma-separated list of names; nil if these services do not accept one of them.
func plainNames(_ list: some Collection<UInt8>) -> [DomainName]? {
  var names: [DomainName] = []
  for text in list.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
    guard let name = DomainName(text: String(decoding: text, as: UTF8.self)), name.isPlain, !name.isRoot else {
      return nil
    }
    names.append(name)
  }
  return names
}
