// ShorterAnswers.swift -- composes an answer again with another set of addresses (`ranking.answers`).

import DNSWire
import MessageCache

extension ComposedResponse {
  /// The response with these addresses, in this order; nil if it cannot be composed.
  func showing(_ addresses: [[UInt8]], of name: DomainName) -> ComposedResponse? {
    var other = message(to: Question(name: name, type: .a))?.composed(to: name, showing: addresses)
    other?.isAuthenticated = isAuthenticated
    other?.extendedError = extendedError
    other?.isForEverySubnet = isForEverySubnet
    return other
  }
}

extension EntryCopy {
  /// The entry's response with these addresses, in this order; nil if it cannot be composed. The entry need not have
  /// contained them.
  func response(to name: DomainName, showing addresses: [[UInt8]]) -> ComposedResponse? {
    let message = Message.assembled(
      name, answers: answers, authorities: authorities, responseCode: responseCode, body: body)
    var response = message?.composed(to: name, showing: addresses)
    response?.isAuthenticated = isAuthenticated
    response?.extendedError = extendedError
    response?.isForEverySubnet = isForEverySubnet
    return response
  }
}

extension Message {
  /// The answer and authority sections, with these addresses in place of the RRset at the end of the answers.
  fileprivate func composed(to name: DomainName, showing addresses: [[UInt8]]) -> ComposedResponse? {
    guard let last = answers.last, last.type == .a || last.type == .aaaa else { return nil }
    let others = answers.prefix { $0.type != last.type || $0.owner != last.owner }
    let shown = addresses.map { ResourceRecord(owner: last.owner, type: last.type, ttl: last.ttl, rdata: $0) }
    return ComposedResponse(responseCode, to: name, answers: Array(others) + shown, authorities: authorities)
  }
}
