// EMASVersion1.swift -- version 1 of EMAS's API: one name or up to five, signed or not, depending on the path.

import DNSWire

struct EMASVersion1 {
  private let transfer: Transfer
  private let service: Service
  private var parameters: Parameters { transfer.parameters }

  init(_ transfer: Transfer, _ service: Service) {
    self.transfer = transfer
    self.service = service
  }

  func reply(account: String, isBatch: Bool, isSigned: Bool) throws(EMASError) -> DialectReply {
    try service.checkEMASAccount(account)
    guard isSigned || !service.options.emas.requiresSignature else { throw .unsignedInterfaceDisabled }
    let host = parameters.octets("host") ?? []
    let questions = try EMASQuestions(names: host, families: parameters["query"], isBatch: isBatch)
    let isVerified = isSigned ? try service.verifyEMASVersion1(parameters, host: host, now: transfer.now) : nil
    let extra = try parameters.sdnsExtra(service.options.emas)
    let clients = try clients(names: questions.names.count, isBatch: isBatch)
    let answers = questions.all.map { service.addresses(of: $0.name, $0.type, for: transfer) }
    var json = JSONWriter()
    if isBatch {
      batch(answers, clients, extra, &json)
    } else {
      single(answers, clients[0], extra, &json)
    }
    let price = EMASQuestions.price(isSecure: transfer.isSecure, isSealed: false)
    return DialectReply(
      contentType: "application/json", body: json.octets, questions: questions.all, isVerified: isVerified,
      subnet: parameters["ip"],
      units: price * answers.count { !$0.addresses.isEmpty } * clients.count)
  }

  /// The clients to answer for: a batch may have several clients instead of several names.
  private func clients(names: Int, isBatch: Bool) throws(EMASError) -> [IPAddress] {
    let sent = (parameters["ip"] ?? "").split(separator: ",").compactMap { IPAddress(text: $0) }
    guard isBatch, sent.count > 1 else { return [sent.first ?? transfer.clientAddress] }
    guard names == 1, sent.count <= EMASQuestions.nameLimit else { throw .tooManyHosts }
    return sent
  }

  private func single(_ answers: [AddressAnswer], _ client: IPAddress, _ extra: String?, _ json: inout JSONWriter) {
    json.beginObject()
    if let answer = answers.first(where: { $0.type == .aaaa }) {
      addresses("ipsv6", answer, &json)
      host(answers[0], client, &json)
      addresses("ips", answers.first { $0.type == .a }, &json)
      ttl(answers, &json)
    } else {
      json.key("host")
      json.name(answers[0].name, finalDot: false)
      addresses("ips", answers[0], &json)
      ttl(answers, &json)
      self.client(client, &json)
    }
    if let extra {
      json.key("extra")
      json.string(extra)
    }
    json.endObject()
  }

  private func batch(_ answers: [AddressAnswer], _ clients: [IPAddress], _ extra: String?, _ json: inout JSONWriter) {
    json.beginObject()
    json.key("dns")
    json.beginArray()
    for client in clients {
      for answer in service.options.emas.isReversed ? answers.reversed() : answers {
        json.beginObject()
        host(answer, client, &json)
        if hasType {
          addresses("ips", answer, &json)
          json.key("type")
          json.number(answer.type.rawValue)
        } else {
          addresses(answer.type == .a ? "ips" : "ipsv6", answer, &json)
        }
        ttl([answer], &json)
        if let extra {
          json.key("extra")
          json.string(extra)
        }
        json.endObject()
      }
    }
    json.endArray()
    json.endObject()
  }

  private func host(_ answer: AddressAnswer, _ client: IPAddress, _ json: inout JSONWriter) {
    json.key("host")
    json.name(answer.name, finalDot: false)
    self.client(client, &json)
  }

  /// Whether the elements of a batch say of which type they are.
  private var hasType: Bool { !service.options.emas.hasTypeWithQuery || parameters["query"] != nil }

  private func client(_ client: IPAddress, _ json: inout JSONWriter) {
    guard !service.options.emas.isSparse else { return }
    json.key("client_ip")
    json.string(client.description)
  }

  private func addresses(_ key: StaticString, _ answer: AddressAnswer?, _ json: inout JSONWriter) {
    let addresses = answer?.addresses ?? []
    guard !(addresses.isEmpty && service.options.emas.isSparse) else { return }
    json.key(key)
    json.beginArray()
    for address in addresses { json.string(service.options.emas.text(address)) }
    json.endArray()
  }

  /// Writes one TTL for the whole object: the remaining one and the original one.
  private func ttl(_ answers: [AddressAnswer], _ json: inout JSONWriter) {
    let switches = service.options.emas
    let whole = answers.compactMap(\.ttl).min()
    if whole == nil, switches.hasEmptyTTL || switches.isSparse {
      guard switches.hasEmptyTTL else { return }
      json.key("ttl")
      return json.number(3600)
    }
    let left = whole.map { $0 - min($0, switches.age) }
    json.key("ttl")
    json.number(left ?? EMASQuestions.emptyTTL)
    guard !switches.isSparse else { return }
    json.key("origin_ttl")
    json.number(whole ?? EMASQuestions.emptyTTL)
  }
}
