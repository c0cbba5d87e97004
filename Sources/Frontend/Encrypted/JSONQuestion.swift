// JSONQuestion.swift -- a question of the JSON interface (`GET /resolve?name=…&type=…`) as a DNS query.
//
// The parameters are those of Google's interface (developers.google.com/speed/public-dns/docs/doh/json); unknown ones are
// ignored. The query takes the same path as any other: what is refused there is the `Status` of the answer.

import DNSWire

/// A question in the query string of a URL.
package struct JSONQuestion: Equatable {
  /// QNAME and QTYPE; A unless the string says otherwise.
  package let question: Question
  /// DO: records of DNSSEC are wanted.
  package let dnssecOK: Bool
  /// CD: an answer that a validator refuses is wanted as well.
  package let checkingDisabled: Bool
  /// The subnet of the client; nil for none.
  package let clientSubnet: ClientSubnet?

  /// Reads a query string: `name`, `type` as a number or a mnemonic, `do` and `cd` as `1`, `true`, `0` or `false`, and
  /// `edns_client_subnet` as an address or a prefix.
  ///
  /// - Throws: `DoHRefusal` with status 400 and the parameter that is missing, malformed or given twice.
  package init(_ query: UnsafeBufferPointer<UInt8>) throws(DoHRefusal) {
    let parameters = Parameters(query)
    guard
      let name = try parameters.value("name", "a domain name", { DomainName(text: $0) })
    else { throw .badParameter("the parameter name is missing") }
    let type = try parameters.value("type", "a record type, as \"AAAA\" or 28", { RecordType(text: $0) })
    question = Question(name: name, type: type ?? .a)
    dnssecOK = try parameters.value("do", "0 or 1", JSONQuestion.flag) ?? false
    checkingDisabled = try parameters.value("cd", "0 or 1", JSONQuestion.flag) ?? false
    clientSubnet = try parameters.value("edns_client_subnet", "an address or a prefix") { text in
      IPPrefix(text: text).map { ClientSubnet($0) }
    }
  }

  /// The query, in wire form. Its ID is 0, and AD asks for the flag in the answer (RFC 6840 section 5.7).
  package var message: [UInt8] {
    let edns = EDNS(dnssecOK: dnssecOK, options: clientSubnet.map { [$0.option] } ?? [])
    var message = Message.query(question, id: 0, edns: edns)
    (message.header.ad, message.header.cd) = (true, checkingDisabled)
    guard let octets = try? message.compose() else {
      preconditionFailure("a query of \(question.name) has no wire form")
    }
    return octets
  }

  private static func flag(_ text: String) -> Bool? {
    switch text {
    case "1", "true": true
    case "0", "false": false
    default: nil
    }
  }
}

/// The parameters of a query string, as sent.
private struct Parameters {
  private var texts: [String: Substring] = [:]
  private var repeated: Set<String> = []

  init(_ query: UnsafeBufferPointer<UInt8>) {
    for part in String(decoding: query, as: UTF8.self).split(separator: "&") {
      let equals = part.firstIndex(of: "=") ?? part.endIndex
      let name = String(part[..<equals])
      if texts.updateValue(part[equals...].dropFirst(), forKey: name) != nil { repeated.insert(name) }
    }
  }

  /// The value of a parameter; nil if it is not given.
  func value<Value>(_ name: String, _ form: String, _ read: (String) -> Value?) throws(DoHRefusal) -> Value? {
    guard let text = texts[name] else { return nil }
    guard !repeated.contains(name) else { throw .badParameter("the parameter \(name) is given twice") }
    guard let value = PercentText.decode(text).flatMap(read) else {
      throw .badParameter("the parameter \(name) is not \(form)")
    }
    return value
  }
}
