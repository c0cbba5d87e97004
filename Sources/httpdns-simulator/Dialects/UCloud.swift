// UCloud.swift -- UCloud's HTTPDNS at `/AUTH_ID/resolve` and `/AUTH_ID/service`, by its document "HTTP API".
//
// The document has neither `type` nor the word before the signature: both are those of the vendor's SDKs. That a time
// ahead of the service's is refused, status 400 and the scheme of nodes over https are invented.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

/// Options of UCloud's service.
struct UCloudSwitches: Sendable {
  /// The application that the account belongs to, which requests have to name; empty if it belongs to none.
  var application = ""
  /// Whether names without a record are said to have failed.
  var isFailing = false
  /// The nodes in the reply of `/service`; empty for the simulator's own addresses.
  var nodes: [ServiceAddress] = []
}

struct UCloud: Dialect {
  let name = "ucloud"
  let account: SecretAccount? = SecretAccount(identifier: "abc-0001", secret: "UcloudSecret01")
  /// Seconds for which a time is valid.
  private static let lifetime: Int64 = 60

  /// Version 1 of EMAS has the same paths, but no such parameter.
  func claims(_ transfer: DialectRequest) -> Bool {
    UCloud.call(transfer.request.path) != nil && transfer.parameters.octets("timestamp") != nil
  }

  private static func call(_ path: String) -> (account: String, resource: String)? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, parts[0].isEmpty, !parts[1].isEmpty, ["resolve", "service"].contains(parts[2]) else {
      return nil
    }
    return (parts[1], parts[2])
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get, let call = UCloud.call(transfer.request.path) else {
      return .refusal(405, "Method Not Allowed")
    }
    var reply = DialectReply(contentType: "application/json", body: [])
    reply.isVerified = isSigned(transfer, by: call.account, service)
    guard call.resource == "resolve" else {
      guard reply.isVerified == true else { return reply.refused(by: Refusal.unauthorized.reply) }
      reply.body = nodes(call.account, transfer, service)
      return reply
    }
    let parameters = transfer.parameters
    guard let names = parameters.octets("host").flatMap(plainNames), names.count == 1,
      let type = UCloud.type(parameters["type"])
    else { return .refusal(400, "Bad Request") }
    reply.questions = [Question(name: names[0], type: type)]
    reply.units = 1
    guard reply.isVerified == true else { return reply.refused(by: Refusal.unauthorized.reply) }
    guard service.isListed(names[0]) else { return reply.refused(by: Refusal.forbidden.reply) }
    let answer = service.addresses(of: names[0], type, for: transfer)
    guard let ttl = answer.ttl else {
      return reply.refused(by: (service.options.ucloud.isFailing ? Refusal.failed : .notFound).reply)
    }
    let json = JSONText.object([
      "host": JSONText.string(answer.name.textWithoutDot),
      "client_ip": JSONText.string(transfer.clientAddress.description),
      "ip_list": JSONText.array(answer.addresses.map(JSONText.string)), "ttl": "\(ttl)",
    ])
    reply.body = Array(json.utf8)
    return reply
  }

  private static func type(_ text: String?) -> RecordType? {
    switch text {
    case nil, "4": .a
    case "6": .aaaa
    default: nil
    }
  }

  private func isSigned(_ transfer: DialectRequest, by identifier: String, _ service: Service) -> Bool {
    guard let account = service.secretAccounts[name], identifier == account.identifier,
      let time = transfer.parameters.octets("timestamp").flatMap(secondsText)
    else { return false }
    let application = service.options.ucloud.application
    return abs(transfer.now - time) <= UCloud.lifetime
      && (application.isEmpty || transfer.parameters["app_id"] == application)
      && transfer.request.field("Authorization") == "MD5 \(UCloud.signature(transfer.parameters, account.secret))"
  }

  /// The lower-case hexadecimal MD5 of the values of all parameters, sorted by name, and of the secret, with hyphens
  /// between them.
  static func signature(_ parameters: Parameters, _ secret: String) -> String {
    let sorted = parameters.pairs.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let texts = sorted.map(\.value) + [Array(secret.utf8)]
    return Hexadecimal.encode(Digest.md5(Array(texts.joined(separator: [UInt8(ascii: "-")]))))
  }

  private func nodes(_ account: String, _ transfer: DialectRequest, _ service: Service) -> [UInt8] {
    let own = (transfer.isSecure ? service.secureAddresses : service.plainAddresses).map { ServiceAddress($0) }
    let addresses = service.options.ucloud.nodes.isEmpty ? own : service.options.ucloud.nodes
    let texts = addresses.map { address in
      let host = address.port == nil && address.address.isIPv6 ? "[\(address)]" : "\(address)"
      return JSONText.string("\(transfer.isSecure ? "https" : "http")://\(host)")
    }
    let json = JSONText.object([
      "auth_id": JSONText.string(account), "client_ip": JSONText.string(transfer.clientAddress.description),
      "best_service_node": texts.first ?? "null", "service_node_list": JSONText.array(texts),
    ])
    return Array(json.utf8)
  }

  /// The errors of the document.
  private enum Refusal {
    case unauthorized, forbidden, notFound, failed

    private var text: (status: Int, code: String, message: String) {
      switch self {
      case .unauthorized: (401, "UNAUTHORIZED", "request is unauthorized")
      case .forbidden: (403, "HOST_FORBIDDEN", "host resolving is forbidden")
      case .notFound: (404, "FAIL_TO_RESOLVE", "record cannot be found")
      case .failed: (404, "FAIL_TO_RESOLVE", "fail to resolve the host")
      }
    }

    var reply: DialectReply {
      let (status, code, message) = text
      let json = JSONText.object([
        "status": "\(status)", "code": JSONText.string(code), "message": JSONText.string(message),
      ])
      return .refusal(status, json, contentType: "application/json")
    }
  }
}
