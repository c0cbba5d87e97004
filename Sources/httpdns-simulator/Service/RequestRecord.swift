// RequestRecord.swift -- what the service was asked: the latest requests, and counters of all of them.

import DNSWire

/// One request, as the record keeps it.
struct RecordedRequest: Sendable {
  /// Milliseconds since 1970 by the machine's clock.
  var milliseconds: Int64
  /// `http` or `https`.
  var transport: String
  var method: String
  var path: String
  /// The Host field.
  var host: String?
  /// As it was sent; decoded only when somebody looks.
  var query: String?
  /// The dialect's name; nil where none took the request.
  var dialect: String?
  /// What was asked, name by name.
  var questions: [Question]
  var isVerified: Bool?
  /// The cipher in which names and reply travelled.
  var cipher: BlockCipher.Mode?
  var subnet: String?
  /// The status that was, or would have been, sent.
  var status: Int
  /// What the real service would charge for it.
  var units = 0
  /// The fault that the request met.
  var fault: Fault.Kind?
}

/// A bounded record of requests, and their counters.
struct RequestRecord {
  /// Questions that are counted one by one; beyond that only the total goes on.
  static let questionLimit = 200_000

  /// Requests kept; older ones are forgotten.
  let limit: Int
  private(set) var transferCount: UInt64 = 0
  private(set) var questionCounts: [Question: UInt64] = [:]
  /// What the real services would charge, by the dialect's name.
  private(set) var units: [String: Int] = [:]
  private var ring: [RecordedRequest] = []
  private var oldest = 0

  init(limit: Int) { self.limit = limit }

  /// The requests that are kept, oldest first.
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

  /// Forgets every request and sets the counters to zero.
  mutating func clear() { self = RequestRecord(limit: limit) }
}

extension RequestRecord {
  /// The requests as a JSON array.
  var requestsJSON: [UInt8] {
    var json = JSONWriter(capacity: ring.count * 256)
    json.beginArray()
    for request in requests { request.write(to: &json) }
    json.endArray()
    return json.octets
  }

  /// The counters as a JSON object; questions are keyed `name. TYPE`, in lower case, in order.
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
