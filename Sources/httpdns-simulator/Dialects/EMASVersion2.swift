// EMASVersion2.swift -- version 2 of EMAS's API: `/v2/d`, in clear text or encrypted with AES.

import DNSWire

struct EMASVersion2 {
  private let transfer: Transfer
  private let service: Service

  init(_ transfer: Transfer, _ service: Service) {
    self.transfer = transfer
    self.service = service
  }

  func reply() throws(EMASError) -> DialectReply {
    let outer = transfer.parameters
    guard let account = outer["id"], !account.isEmpty else { throw .missingArgument }
    guard account == service.emas.identifier else { throw .invalidAccount }
    let cipher = try cipher(outer["m"])
    let isVerified = try service.verifyEMASVersion2(outer, now: transfer.now)
    let parameters = try cipher.map { cipher throws(EMASError) in try opened(outer, cipher) } ?? outer
    let questions = try EMASQuestions(
      names: parameters.octets("dn") ?? [], families: parameters["q"], isBatch: true)
    let extra = try parameters.sdnsExtra(service.options.emas)
    let answers = questions.names.map { name in
      questions.families.map { service.addresses(of: name, $0, for: transfer) }
    }
    let client = parameters.address("cip") ?? transfer.clientAddress
    let billed = answers.joined().count { !$0.addresses.isEmpty }
    return DialectReply(
      contentType: "application/json", body: body(data(answers, client, extra), cipher), questions: questions.all,
      isVerified: isVerified, cipher: cipher?.mode, subnet: parameters["cip"],
      units: EMASQuestions.price(isSecure: transfer.isSecure, isSealed: cipher != nil) * billed)
  }

  /// The cipher that `m` selects; nil for none.
  private func cipher(_ mode: String?) throws(EMASError) -> BlockCipher? {
    let found: BlockCipher.Mode
    switch mode {
    case nil, "", "0": return nil
    case "1": found = .cbc
    case "2": found = .gcm
    default: throw .missingArgument
    }
    guard let key = hexDecoded(Array(service.emas.aesSecret.utf8)), key.count == 16 else { throw .invalidSignature }
    return BlockCipher(found, key: key)
  }

  /// The parameters inside `enc`.
  private func opened(_ outer: Parameters, _ cipher: BlockCipher) throws(EMASError) -> Parameters {
    guard let sealed = outer.octets("enc"), !sealed.isEmpty else { throw .missingArgument }
    guard let text = hexDecoded(sealed).flatMap(cipher.open), let inner = flatObject(text) else {
      throw .invalidSignature
    }
    return inner
  }

  private func data(_ answers: [[AddressAnswer]], _ client: IPAddress, _ extra: String?) -> [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    let switches = service.options.emas
    if !switches.isSparse {
      json.key("cip")
      json.string(client.description)
    }
    json.key("answers")
    json.beginArray()
    for families in switches.isReversed ? answers.reversed() : answers {
      json.beginObject()
      json.key("dn")
      json.name(families[0].name, finalDot: false)
      for answer in families { family(answer, extra, &json) }
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.octets
  }

  private func family(_ answer: AddressAnswer, _ extra: String?, _ json: inout JSONWriter) {
    json.key(answer.type == .a ? "v4" : "v6")
    json.beginObject()
    let switches = service.options.emas
    if !(switches.isSparse && answer.addresses.isEmpty) {
      json.key("ips")
      json.beginArray()
      for address in answer.addresses { json.string(switches.text(address)) }
      json.endArray()
    }
    if !switches.isSparse {
      json.key("ttl")
      json.number(answer.ttl ?? EMASQuestions.emptyTTL)
    }
    if let extra {
      json.key("extra")
      json.string(extra)
    }
    // The code for a name that is not on the account's list is unknown, so none is sent; the same for failures.
    if answer.addresses.isEmpty, answer.isListed, let code = EMASVersion2.code(answer.code) {
      json.key("no_ip_code")
      json.string(code)
    }
    json.endObject()
  }

  private static func code(_ code: ResponseCode) -> String? {
    switch code {
    case .noError: "RRNotExist"
    case .nxDomain: "DomainNotExist"
    default: nil
    }
  }

  /// Composes the body: the data in clear text, or encrypted and in Base64.
  private func body(_ data: [UInt8], _ cipher: BlockCipher?) -> [UInt8] {
    let mode =
      switch cipher?.mode {
      case nil, .des: 0
      case .cbc: 1
      case .gcm: 2
      }
    var json = JSONWriter()
    json.beginObject()
    json.key("code")
    json.string("success")
    if cipher != nil || !service.options.emas.isSparse {
      json.key("mode")
      if service.options.emas.modeIsNumber { json.number(mode) } else { json.string("\(mode)") }
    }
    json.key("data")
    if let cipher { json.string(base64(cipher.seal(data))) } else { json.raw(data) }
    json.endObject()
    return json.octets
  }
}
