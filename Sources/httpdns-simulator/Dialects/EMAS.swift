// EMAS.swift -- Alibaba's EMAS HTTPDNS: selects the call by its path; what v1, v2 and the scheduling call share.
//
// Its documents do not define the order of checks, nor the error for a `query` out of range (here: MissingArgument) and
// for a text that the account's key does not decrypt (here: InvalidSignature).

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct EMAS: Dialect {
  let name = "emas"

  func claims(_ transfer: DialectRequest) -> Bool { EMASCall(path: transfer.request.path) != nil }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    do throws(EMASError) {
      guard transfer.request.method == .get else { throw .methodNotAllowed }
      switch EMASCall(path: transfer.request.path) {
      case .version1(let account, let isBatch, let isSigned):
        return try EMASVersion1(transfer: transfer, service: service).reply(
          account: account, isBatch: isBatch, isSigned: isSigned)
      case .version2: return try EMASVersion2(transfer: transfer, service: service).reply()
      case .schedule(let account): return try EMASSchedule(transfer: transfer, service: service).reply(account: account)
      case nil: return .refusal(404, "Not Found")
      }
    } catch {
      var refusal = DialectReply.refusal(error)
      refusal.isVerified = transfer.parameters.octets("s") == nil ? nil : false
      refusal.questions = EMAS.questions(of: transfer)
      return refusal
    }
  }

  /// The unencrypted questions of a refused request, for the record.
  private static func questions(of transfer: DialectRequest) -> [Question] {
    let list = transfer.parameters.octets("host") ?? transfer.parameters.octets("dn") ?? []
    let query = transfer.parameters["query"] ?? transfer.parameters["q"]
    return (try? EMASQuestions(names: list, families: query, isBatch: true))?.all ?? []
  }
}

/// The call that a path selects.
private enum EMASCall {
  case version1(account: String, isBatch: Bool, isSigned: Bool)
  case version2
  case schedule(account: String)

  init?(path: String) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    switch (parts[1], parts[2]) {
    case ("v2", "d"): self = .version2
    case (let account, "d"): self = .version1(account: account, isBatch: false, isSigned: false)
    case (let account, "sign_d"): self = .version1(account: account, isBatch: false, isSigned: true)
    case (let account, "resolve"): self = .version1(account: account, isBatch: true, isSigned: false)
    case (let account, "sign_resolve"): self = .version1(account: account, isBatch: true, isSigned: true)
    case (let account, "ss"): self = .schedule(account: account)
    default: return nil
    }
  }
}

/// The error code of a refusal.
enum EMASError: String, Error, CaseIterable, Sendable {
  case missingArgument = "MissingArgument"
  case tooManyHosts = "TooManyHosts"
  case sdnsNotSupported = "SdnsNotSupported"
  case invalidHost = "InvalidHost"
  case signatureExpired = "SignatureExpired"
  case invalidSignature = "InvalidSignature"
  case invalidDuration = "InvalidDuration"
  case unsignedInterfaceDisabled = "UnsignedInterfaceDisabled"
  case invalidAccount = "InvalidAccount"
  case accountNotExists = "AccountNotExists"
  case serviceLevelDeny = "ServiceLevelDeny"
  case methodNotAllowed = "MethodNotAllowed"
  case internalError = "InternalError"

  /// The HTTP status of the error.
  var status: Int {
    switch self {
    case .missingArgument, .tooManyHosts, .sdnsNotSupported, .invalidHost: 400
    case .signatureExpired, .invalidSignature, .invalidDuration, .unsignedInterfaceDisabled, .invalidAccount,
      .accountNotExists, .serviceLevelDeny:
      403
    case .methodNotAllowed: 405
    case .internalError: 500
    }
  }
}

extension DialectReply {
  static func refusal(_ error: EMASError) -> DialectReply {
    .refusal(error.status, "{\"code\":\"\(error.rawValue)\"}", contentType: "application/json")
  }
}

/// The names and families of a request, for v1 and v2.
struct EMASQuestions {
  static let nameLimit = 5
  /// The TTL in seconds without addresses.
  static let emptyTTL: UInt32 = 60

  let names: [DomainName]
  let families: [RecordType]

  /// - Throws: `MissingArgument`, `TooManyHosts` or `InvalidHost`.
  init(names list: [UInt8], families query: String?, isBatch: Bool) throws(EMASError) {
    switch query {
    case nil, "", "4": families = [.a]
    case "6": families = [.aaaa]
    case "4,6", "6,4": families = [.a, .aaaa]
    default: throw .missingArgument
    }
    guard !list.isEmpty else { throw .missingArgument }
    guard isBatch || !list.contains(UInt8(ascii: ",")) else { throw .invalidHost }
    guard list.count(where: { $0 == UInt8(ascii: ",") }) < EMASQuestions.nameLimit else { throw .tooManyHosts }
    guard let names = plainNames(list) else { throw .invalidHost }
    self.names = names
  }

  /// All questions: name by name, IPv4 before IPv6.
  var all: [Question] { names.flatMap { name in families.map { Question(name: name, type: $0) } } }

  /// The price of a question that has addresses, in resolutions over plain HTTP.
  static func price(isSecure: Bool, isSealed: Bool) -> Int { isSecure ? isSealed ? 8 : 5 : isSealed ? 3 : 1 }
}

extension Parameters {
  /// The customer's own parameters, without their prefix `sdns-`.
  var sdns: [(name: String, value: [UInt8])] {
    pairs.filter { $0.name.hasPrefix("sdns-") }.map { (String($0.name.dropFirst(5)), $0.value) }
  }

  /// The reply's `extra` for these parameters: a JSON object as text, escaped for HTML; nil if there are none.
  ///
  /// - Throws: `SdnsNotSupported` if the account may not send them.
  func sdnsExtra(_ switches: EMASSwitches) throws(EMASError) -> String? {
    let sdns = sdns
    guard !sdns.isEmpty else { return nil }
    guard switches.supportsSDNS else { throw .sdnsNotSupported }
    let json = JSONText.object(
      sdns.map { ($0.name, JSONText.string(String(decoding: $0.value, as: UTF8.self))) })
    return json.replacing("&", with: "&amp;").replacing("\"", with: "&quot;")
      .replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }

  /// The first address of a comma-separated list; nil if it is not an address.
  func address(_ name: String) -> IPAddress? { self[name]?.split(separator: ",").first.flatMap { IPAddress(text: $0) } }
}
