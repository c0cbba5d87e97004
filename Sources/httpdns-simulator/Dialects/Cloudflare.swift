// Cloudflare.swift -- Cloudflare's JSON at `/dns-query`, selected by `Accept: application/dns-json`.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct Cloudflare: Dialect {
  let name = "cloudflare"

  func claims(_ transfer: DialectRequest) -> Bool {
    transfer.request.path == "/dns-query" && transfer.request.field("Accept") == "application/dns-json"
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "") }
    let parameters = transfer.parameters
    guard let name = parameters["name"].flatMap({ DomainName(text: $0) }) else {
      return refusal("Invalid query name `\(parameters["name"] ?? "")`.")
    }
    guard let type = recordType(parameters["type"]) else {
      return refusal("Invalid query type `\(parameters["type"] ?? "")`.")
    }
    guard flag(parameters["do"]) != nil else { return invalidFlag("DO", parameters["do"]) }
    guard let cd = flag(parameters["cd"]) else { return invalidFlag("CD", parameters["cd"]) }
    let question = Question(name: name, type: type)
    let answer = service.answer(question, for: transfer)
    let comment =
      answer.extendedError.map { "EDE(\($0)): on demand" }
      ?? (answer.code == .servFail ? "EDE(22): No Reachable Authority" : nil)
    let json = style(of: service).text(
      of: answer, cd: cd, ["Comment": comment.map { JSONText.array([JSONText.string($0)]) }])
    return DialectReply(contentType: "application/dns-json", body: Array(json.utf8), questions: [question])
  }

  private func style(of service: Service) -> JSONStyle {
    JSONStyle(
      finalDot: service.options.cloudflareFinalDot, text: .quoted,
      usesGenericForm: service.options.cloudflareGenericForm)
  }

  private func invalidFlag(_ flag: String, _ value: String?) -> DialectReply {
    refusal("Invalid \(flag) flag `\(value ?? "")`. Expected to be empty, 0, false, 1, or true.")
  }

  private func refusal(_ text: String) -> DialectReply {
    .refusal(400, JSONText.object(["error": JSONText.string(text)]), contentType: "application/json")
  }
}
