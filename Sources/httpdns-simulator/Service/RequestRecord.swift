// RequestRecord.swift -- records the latest requests and counts all of them.

import DNSWire

struct RecordedRequest: Sendable {
  /// Milliseconds since 1970 on the system clock.
  var milliseconds: Int64
  /// `http` or `https`.
  var transport: String
  var method: String
  var path: String
  /// The Host field.
  var host: String?
  /// The query as sent; decoded only when the record is read.
  var query: String?
  /// The dialect's name; nil if no dialect claimed the request.
  var dialect: String?
  /// The questions, name by name.
  var questions: [Question]
  var isVerified: Bool?
  /// The cipher of names and reply.
  var cipher: BlockCipher.Mode?
  var subnet: String?
  /// The status that was sent, or would have been sent without the fault of the connection.
  var status: Int
  /// The price that the real service would charge.
  var units = 0
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
    if let dialect = request.dialect, request.units > 0 { units[dialect, default: 0] += request.units }
    for question in request.questions {
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
  var requestsJSON: [UInt8] {
    var json = JSONWriter(capacity: ring.count * 256)
    json.beginArray()
    for request in requests { request.write(to: &json) }
    json.endArray()
    return json.octets
  }

  /// The counters as a JSON object. The keys of questions are `name. TYPE` in lower case, sorted.
  func countJSON(connections: UInt64) -> [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    json.key("transfers")
    json.number(transferCount)
    json.key("connections")
    json.number(connections)
    json.key("questions")
    json.beginObject()
    let counts = questionCounts.map { ("\($0.name.lowercased) \($0.type)", $1) }
    for (question, count) in counts.sorted(by: { $0.0 < $1.0 }) {
      json.key(question)
      json.number(count)
    }
    json.endObject()
    json.key("units")
    json.beginObject()
    for (dialect, count) in units.sorted(by: { $0.key < $1.key }) {
      json.key(dialect)
      json.number(count)
    }
    json.endObject()
    json.endObject()
    return json.octets
  }
}

extension RecordedRequest {
  fileprivate func write(to json: inout JSONWriter) {
    json.beginObject()
    json.key("time")
    json.number(milliseconds)
    json.key("transport")
    json.string(transport)
    json.key("method")
    json.string(method)
    json.key("path")
    json.string(path)
    json.key("host")
    if let host { json.string(host) } else { json.null() }
    json.key("dialect")
    if let dialect { json.string(dialect) } else { json.null() }
    if let question = questions.first {
      json.key("name")
      json.name(question.name, finalDot: true)
      json.key("type")
      json.string(question.type.description)
    }
    json.key("questions")
    json.beginArray()
    for question in questions { json.string("\(question.name) \(question.type)") }
    json.endArray()
    json.key("verified")
    if let isVerified { json.bool(isVerified) } else { json.null() }
    json.key("cipher")
    if let cipher { json.string(cipher.rawValue) } else { json.null() }
    json.key("subnet")
    if let subnet { json.string(subnet) } else { json.null() }
    json.key("status")
    json.number(status)
    json.key("units")
    json.number(units)
    json.key("fault")
    if let fault { json.string(fault.rawValue) } else { json.null() }
    json.key("parameters")
    json.beginObject()
    for pair in Parameters(query: query).pairs {
      json.key(pair.name)
      json.string(String(decoding: pair.value, as: UTF8.self))
    }
    json.endObject()
    json.endObject()
  }
}
