// AddressAnswer.swift -- what services that know nothing but addresses say about a name and a family.

import DNSWire

/// The addresses of one family at one name.
struct AddressAnswer: Sendable {
  /// The name that the reply is about.
  let name: DomainName
  /// A or AAAA.
  let type: RecordType
  /// The addresses as text, in the zone's order.
  var addresses: [String] = []
  /// The smallest TTL of the chain and the addresses; nil without addresses.
  var ttl: UInt32?
  /// Why there are none: the name does not exist, or has no such records.
  var code = ResponseCode.noError
  /// Whether the account may ask for the name; if not, nothing is said about it.
  var isListed = true
}

extension Service {
  /// The addresses at a name, which have to be in the account's list.
  func addresses(of name: DomainName, _ type: RecordType, for transfer: Transfer) -> AddressAnswer {
    let answer = answer(Question(name: name, type: type), for: transfer)
    guard !options.notListed.contains(where: { name.isAtOrBelow($0) }) else {
      return AddressAnswer(name: answer.question.name, type: type, isListed: false)
    }
    let addresses = answer.records.filter { $0.type == type }.map(\.text)
    return AddressAnswer(
      name: answer.question.name, type: type, addresses: addresses,
      ttl: addresses.isEmpty ? nil : answer.records.map(\.ttl).min(), code: answer.code)
  }
}

/// The names of a list with commas; nil where one of them is none that these services take.
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
