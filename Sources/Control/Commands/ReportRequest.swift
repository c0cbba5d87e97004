// ReportRequest.swift -- `POST /report`: what programs saw when they used addresses; the body is JSON.

import DNSWire
import HTTPMessage
import HTTPServer
import Resolver
import Telemetry

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
  static let off = "reports are off: ranking.reports is false, or there is no cache"

  let outcome: ReportOutcome

  var status: Int {
    switch outcome {
    case .taken: 200
    case .off: 403
    case .tooMany: 429
    }
  }

  var isIncomplete: Bool {
    guard case .taken(let counted, _) = outcome else { return true }
    return counted == 0
  }

  var text: String {
    switch outcome {
    case .taken(let counted, 0): "\(counted) \(counted == 1 ? "report" : "reports") counted\n"
    case .taken(let counted, let unknown):
      "\(counted) of \(counted + unknown) reports counted; no cached answer to the name has the address of the "
        + "\(unknown == 1 ? "other" : "others")\n"
    case .off: "\(ReportText.off)\n"
    case .tooMany: "more than 100 reports in a second\n"
    }
  }

  var json: String {
    guard case .taken(let counted, let unknown) = outcome else { return JSONText.object(["counted": "0"]) }
    return JSONText.object(["counted": "\(counted)", "unknown": "\(unknown)"])
  }
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
