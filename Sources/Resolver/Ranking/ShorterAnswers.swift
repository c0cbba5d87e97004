// ShorterAnswers.swift -- composes an answer with other addresses than it has (`ranking.answers`).

import DNSWire
import MessageCache

extension ComposedResponse {
  /// The response with these of its addresses, in this order; nil if it cannot be composed.
  func keeping(_ addresses: [[UInt8]], of name: DomainName) -> ComposedResponse? {
    guard let message = message(to: Question(name: name, type: .a)) else { return nil }
    var shorter = ComposedResponse(
      responseCode, to: name, answers: message.answers.showing(addresses), authorities: message.authorities)
    shorter?.isAuthenticated = isAuthenticated
    shorter?.extendedError = extendedError
    shorter?.isForEverySubnet = isForEverySubnet
    return shorter
  }
}

extension EntryCopy {
  /// The entry's response with these addresses, which it may not have had, in this order; nil if it cannot be composed.
  func response(to name: DomainName, showing addresses: [[UInt8]]) -> ComposedResponse? {
    let message = Message.assembled(
      name, answers: answers, authorities: authorities, responseCode: responseCode, body: body)
    guard let message else { return nil }
    var response = ComposedResponse(
      responseCode, to: name, answers: message.answers.showing(addresses), authorities: message.authorities)
    response?.isAuthenticated = isAuthenticated
    response?.isForEverySubnet = isForEverySubnet
    return response
  }
}

extension [ResourceRecord] {
  /// The records, with these addresses in the place of those at their end.
  fileprivate func showing(_ addresses: [[UInt8]]) -> [ResourceRecord] {
    guard let last, last.type == .a || last.type == .aaaa else { return self }
    let others = prefix { $0.type != last.type || $0.owner != last.owner }
    return others
      + addresses.map { ResourceRecord(owner: last.owner, type: last.type, ttl: last.ttl, rdata: $0) }
  }
}
