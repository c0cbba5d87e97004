// RequestRecord.swift -- records the latest requests and counts all of them.

import Ciphers
import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct RecordedRequest: Sendable {
  /// Milliseconds since 1970 on the system clock.
  var milliseconds: Int64
  var transfer: DialectRequest
  /// The reply without its body, as sent or as it would have been without the fault of the connection.
  var reply: DialectReply
  /// The dialect's name; nil if no dialect claimed the request.
  var dialect: String?
  /// The fault that was applied.
  var fault: Fault.Kind?
}

/// A bounded record of requests, and their counters.
struct RequestRecord {
  /// Maximum different questions with a counter; beyond it, new questions have no counter.
  static let questionLimit = 200_000

  /// Maximum recorded requests; older ones are dropped.
  let limit: Int
  private(set) var transferCount: UInt64 = 0
  private(set) var questionCounts: [Question: UInt64] = [:]
  /// The prices that the real services would charge, by the dialect's name.
  private(set) var units: [String: Int] = [:]
  private var ring: [RecordedRequest] = []
  private var oldest = 0

  init(limit: Int) { self.limit = limit }

  /// The recorded requests, oldest first.
  var requests: [RecordedRequest] { Array(ring[oldest...]) + ring[..<oldest] }

  mutating func note(_ request: RecordedRequest) {
    transferCount += 1
    if let dialect = request.dialect, request.reply.units > 0 { units[dialect, default: 0] += request.reply.units }
    for question in request.reply.questions {
      if questionCounts[question] != nil || questionCounts.count < RequestRecord.questionLimit {
        questionCounts[question, default: 0] += 1
      }
    }
    if ring.count < limit {
      ring.append(request)
    } else if limit > 0 {
      ring[oldest] = request
      oldest = (oldest + 1) % limit
    }
  }

  /// Removes all requests and resets the counters.
  mutating func clear() { self = RequestRecord(limit: limit) }
}

extension RequestRecord {
  var requestsJSON: [UInt8] { Array(JSONText.array(requests.map(\.json)).utf8) }

  /// The counters as a JSON object. The keys of questions are `name. TYPE` in lower case, sorted.
  func countJSON(connections: UInt64) -> [UInt8] {
    let questions = questionCounts.map { ("\($0.name.lowercased) \($0.type)", "\($1)") }.sorted { $0.0 < $1.0 }
    let json = JSONText.object([
      "transfers": "\(transferCount)", "connections": "\(connections)",
      "questions": JSONText.object(questions),
      "units": JSONText.object(units.sorted { $0.key < $1.key }.map { ($0, "\($1)") }),
    ])
    return Array(json.utf8)
  }
}

extension RecordedRequest {
  fileprivate var json: String {
    func text(_ value: String?) -> String { value.map(JSONText.string) ?? "null" }
    let request = transfer.request
    let parameters = transfer.parameters.pairs.map { ($0.name, text(String(decoding: $0.value, as: UTF8.self))) }
    return JSONText.object([
      "time": "\(milliseconds)", "transport": text(transfer.isSecure ? "https" : "http"),
      "method": text(request.method.rawValue), "path": text(request.path), "host": text(request.field("Host")),
      "dialect": text(dialect), "name": reply.question.map { text($0.name.text) },
      "type": reply.question.map { text($0.type.description) },
      "questions": JSONText.array(reply.questions.map { text("\($0.name) \($0.type)") }),
      "verified": reply.isVerified.map { "\($0)" } ?? "null", "cipher": text(reply.cipher?.rawValue),
      "subnet": text(reply.subnet), "status": "\(reply.status)", "units": "\(reply.units)",
      "fault": text(fault?.rawValue), "parameters": JSONText.object(parameters),
    ])
  }
}
