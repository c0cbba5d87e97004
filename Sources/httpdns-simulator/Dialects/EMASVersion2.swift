// EMASVersion2.swift -- version 2 of EMAS's API: `/v2/d`, in clear text or encrypted with AES.

import Ciphers
import DNSWire
import JSON

struct EMASVersion2 {
  let transfer: DialectRequest
  let service: Service

  func reply() throws(EMASError) -> DialectReply {
    let outer = transfer.parameters
    guard let account = outer["id"], !account.isEmpty else { throw .missingArgument }
    guard account == service.emas.identifier else { throw .invalidAccount }
    let cipher = try cipher(outer["m"])
    let isVerified = try service.verifyEMASVersion2(outer, now: transfer.now)
    let parameters = try cipher.map { cipher throws(EMASError) in try opened(outer, cipher) } ?? outer
    let questions = try EMASQuestions(names: parameters.octets("dn") ?? [], families: parameters["q"], isBatch: true)
    let extra = try parameters.sdnsExtra(service.options.emas)
    let answers = questions.names.map { name in
      questions.families.map { service.addresses(of: name, $0, for: transfer) }
    }
    let client = parameters.address("cip") ?? transfer.clientAddress
    let billed = answers.joined().count { !$0.addresses.isEmpty }
    return DialectReply(
      contentType: "application/json", body: body(data(answers, client, extra), cipher),
      questions: questions.all,
      isVerified: isVerified, cipher: cipher?.mode, subnet: parameters["cip"],
      units: EMASQuestions.price(isSecure: transfer.isSecure, isSealed: cipher != nil) * billed)
  }

  /// The cipher that `m` selects; nil for none.
  private func cipher(_ mode: String?) throws(EMASError) -> BlockCipher? {
    let found: BlockCipher.Mode
    switch mode {
    case nil, "", "0": return nil
    case "1": found = .aesCBC
    case "2": found = .aesGCM
    default: throw .missingArgument
    }
    guard let key = Hexadecimal.decode(service.emas.aesSecret), key.count == 16 else { throw .invalidSignature }
    return BlockCipher(found, key: key)
  }

  /// The parameters inside `enc`.
  private func opened(_ outer: Parameters, _ cipher: BlockCipher) throws(EMASError) -> Parameters {
    guard let sealed = outer.octets("enc"), !sealed.isEmpty else { throw .missingArgument }
    guard let text = Hexadecimal.decode(sealed).flatMap(cipher.open), let inner = flatObject(text) else {
      throw .invalidSignature
    }
    return inner
  }

  private func data(_ answers: [[AddressAnswer]], _ client: IPAddress, _ extra: String?) -> String {
    let switches = service.options.emas
    let list = (switches.isReversed ? answers.reversed() : answers).map { families in
      JSONText.object(
        [("dn", JSONText.string(families[0].name.textWithoutDot))]
          + families.map { ($0.type == .a ? "v4" : "v6", family($0, extra)) })
    }
    return JSONText.object([
      "cip": switches.isSparse ? nil : JSONText.string(client.description),
      "answers": JSONText.array(list),
    ])
  }

  private func family(_ answer: AddressAnswer, _ extra: String?) -> String {
    let switches = service.options.emas
    let addresses = JSONText.array(answer.addresses.map { JSONText.string(switches.text($0)) })
    // The code for a name that is not on the account's list is unknown, so none is sent; the same for failures.
    let code = answer.addresses.isEmpty && answer.isListed ? EMASVersion2.code(answer.code) : nil
    return JSONText.object([
      "ips": switches.isSparse && answer.addresses.isEmpty ? nil : addresses,
      "ttl": switches.isSparse ? nil : "\(answer.ttl ?? EMASQuestions.emptyTTL)",
      "extra": extra.map(JSONText.string), "no_ip_code": code.map(JSONText.string),
    ])
  }

  private static func code(_ code: ResponseCode) -> String? {
    switch code {
    case .noError: "RRNotExist"
    case .nxDomain: "DomainNotExist"
    default: nil
    }
  }

  /// Composes the body: the data in clear text, or encrypted and in Base64.
  private func body(_ data: String, _ cipher: BlockCipher?) -> [UInt8] {
    let mode =
      switch cipher?.mode {
      case nil, .desECB: 0
      case .aesCBC: 1
      case .aesGCM: 2
      }
    let switches = service.options.emas
    let json = JSONText.object([
      "code": JSONText.string("success"),
      "mode": cipher == nil && switches.isSparse ? nil : switches.modeIsNumber ? "\(mode)" : JSONText.string("\(mode)"),
      "data": cipher.map { JSONText.string(Base64.encode($0.seal(Array(data.utf8)))) } ?? data,
    ])
    return Array(json.utf8)
  }
}
