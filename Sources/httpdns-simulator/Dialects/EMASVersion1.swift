// EMASVersion1.swift -- version 1 of EMAS's API: one name or up to five, signed or not, depending on the path.

import DNSWire
import JSON

struct EMASVersion1 {
  let transfer: DialectRequest
  let service: Service
  private var parameters: Parameters { transfer.parameters }

  func reply(account: String, isBatch: Bool, isSigned: Bool) throws(EMASError) -> DialectReply {
    try service.checkEMASAccount(account)
    guard isSigned || !service.options.emas.requiresSignature else { throw .unsignedInterfaceDisabled }
    let host = parameters.octets("host") ?? []
    let questions = try EMASQuestions(names: host, families: parameters["query"], isBatch: isBatch)
    let isVerified = isSigned ? try service.verifyEMASVersion1(parameters, host: host, now: transfer.now) : nil
    let extra = try parameters.sdnsExtra(service.options.emas)
    let clients = try clients(names: questions.names.count, isBatch: isBatch)
    let answers = questions.all.map { service.addresses(of: $0.name, $0.type, for: transfer) }
    let members = isBatch ? batch(answers, clients, extra) : single(answers, clients[0], extra)
    let price = EMASQuestions.price(isSecure: transfer.isSecure, isSealed: false)
    return DialectReply(
      contentType: "application/json", body: Array(JSONText.object(members).utf8), questions: questions.all,
      isVerified: isVerified, subnet: parameters["ip"],
      units: price * answers.count { !$0.addresses.isEmpty } * clients.count)
  }

  /// The clients to answer for: a batch may have several clients instead of several names.
  private func clients(names: Int, isBatch: Bool) throws(EMASError) -> [IPAddress] {
    let sent = (parameters["ip"] ?? "").split(separator: ",").compactMap { IPAddress(text: $0) }
    guard isBatch, sent.count > 1 else { return [sent.first ?? transfer.clientAddress] }
    guard names == 1, sent.count <= EMASQuestions.nameLimit else { throw .tooManyHosts }
    return sent
  }

  private typealias Members = [(String, String)]

  private func single(_ answers: [AddressAnswer], _ client: IPAddress, _ extra: String?) -> Members {
    let extra = JSONText.members(["extra": extra.map(JSONText.string)])
    if let answer = answers.first(where: { $0.type == .aaaa }) {
      return addresses("ipsv6", answer) + host(answers[0]) + self.client(client)
        + addresses("ips", answers.first { $0.type == .a }) + ttl(answers) + extra
    }
    return host(answers[0]) + addresses("ips", answers[0]) + ttl(answers) + self.client(client) + extra
  }

  private func batch(_ answers: [AddressAnswer], _ clients: [IPAddress], _ extra: String?) -> Members {
    let answers = service.options.emas.isReversed ? answers.reversed() : answers
    let elements = clients.flatMap { client in
      answers.map { answer in
        let list = hasType || answer.type == .a ? "ips" : "ipsv6"
        let type = JSONText.members(["type": hasType ? "\(answer.type.rawValue)" : nil])
        return JSONText.object(
          host(answer) + self.client(client) + addresses(list, answer) + type + ttl([answer])
            + JSONText.members(["extra": extra.map(JSONText.string)]))
      }
    }
    return [("dns", JSONText.array(elements))]
  }

  private func host(_ answer: AddressAnswer) -> Members { [("host", JSONText.string(answer.name.textWithoutDot))] }

  /// Whether the elements of a batch say of which type they are.
  private var hasType: Bool { !service.options.emas.hasTypeWithQuery || parameters["query"] != nil }

  private func client(_ client: IPAddress) -> Members {
    service.options.emas.isSparse ? [] : [("client_ip", JSONText.string(client.description))]
  }

  private func addresses(_ key: String, _ answer: AddressAnswer?) -> Members {
    let addresses = answer?.addresses ?? []
    guard !(addresses.isEmpty && service.options.emas.isSparse) else { return [] }
    return [(key, JSONText.array(addresses.map { JSONText.string(service.options.emas.text($0)) }))]
  }

  /// One TTL for the whole object: the remaining one and the original one.
  private func ttl(_ answers: [AddressAnswer]) -> Members {
    let switches = service.options.emas
    let whole = answers.compactMap(\.ttl).min()
    if whole == nil, switches.hasEmptyTTL { return [("ttl", "3600")] }
    if whole == nil, switches.isSparse { return [] }
    let left = whole.map { $0 - min($0, switches.age) }
    return JSONText.members([
      "ttl": "\(left ?? EMASQuestions.emptyTTL)",
      "origin_ttl": switches.isSparse ? nil : "\(whole ?? EMASQuestions.emptyTTL)",
    ])
  }
}
