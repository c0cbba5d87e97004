// ReportRequest.swift -- `POST /report`: what programs saw when they used addresses; the body is JSON.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON
import Resolver

struct ReportRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/report"

  let batch: ReportBatch

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    guard request.query == nil else { throw ControlRefusal(status: 400, reason: "no parameter is allowed") }
    do throws(ReportBatch.Refusal) {
      batch = try ReportBatch(request.body)
    } catch {
      let isLong = request.body.count > ReportBatch.mostOctets
      throw ControlRefusal(status: isLong ? 413 : 400, reason: error.reason)
    }
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    ReportText(outcome: await actions.take(batch))
  }
}

struct ReportText: ControlText {
  let outcome: ReportOutcome

  var status: Int { outcome.status }

  var isIncomplete: Bool {
    guard case .taken(let counted, _) = outcome else { return true }
    return counted == 0
  }

  var text: String { "\(outcome.line)\n" }
  var json: String { outcome.json }
}

extension ControlClient {
  /// Reports what came of using an address.
  ///
  /// - Parameters:
  ///   - works: whether it worked.
  ///   - milliseconds: the round trip; nil if it is not known.
  public func report(
    _ name: String, _ address: String, works: Bool, milliseconds: Int?, _ form: ControlForm
  ) throws(ControlClientError) -> ControlAnswer {
    let item = JSONText.object([
      "name": JSONText.string(name), "address": JSONText.string(address),
      "result": JSONText.string(works ? "ok" : "failed"), "ms": milliseconds.map { "\($0)" },
    ])
    return try ask(ReportRequest.self, form, lines: ["{\"reports\":[\(item)]}"])
  }
}
