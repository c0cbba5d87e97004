// Control.swift -- the paths below `/_simulator/`: faults, the record of requests, the zone.
//
//   POST   /_simulator/fault?kind=…   adds a fault; the parameters may also be the body, as JSON or as a query
//   GET    /_simulator/fault          the faults in force
//   DELETE /_simulator/fault          removes them
//   GET    /_simulator/requests       the requests that are kept, oldest first
//   GET    /_simulator/count          how many transfers, connections, and of which questions
//   DELETE /_simulator/requests, /_simulator/count    forgets requests and counters
//   PUT    /_simulator/zone           the body is the zone from now on
//   DELETE /_simulator/zone           back to the zone of the start

import CJSON
import HTTPServer

private let controlPrefix = "/_simulator/"

/// Whether a request is for the simulator itself and not for the service.
func isControl(_ request: HTTPServerRequest) -> Bool { request.path.hasPrefix(controlPrefix) }

extension Simulator {
  /// Answers a request for the simulator itself.
  func control(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard isControl(request) else { return reply.send(status: 404) }
    switch (request.method, request.path.dropFirst(controlPrefix.count)) {
    case (.post, "fault"): addFault(request, reply)
    case (.get, "fault"): reply.sendJSON(faultsJSON(faults.faults))
    case (.delete, "fault"):
      faults.clear()
      reply.send(status: 204)
    case (.get, "requests"): reply.sendJSON(record.requestsJSON)
    case (.get, "count"): reply.sendJSON(record.countJSON(connections: connectionCount))
    case (.delete, "requests"), (.delete, "count"):
      record.clear()
      reply.send(status: 204)
    case (.put, "zone"): replaceZone(request, reply)
    case (.delete, "zone"):
      restoreZone()
      reply.send(status: 204)
    case (_, "fault"), (_, "requests"), (_, "count"), (_, "zone"): reply.send(status: 405)
    default: reply.send(status: 404)
    }
  }

  private func addFault(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    var parameters = Parameters(query: request.query)
    if !request.body.isEmpty {
      guard let sent = faultParameters(request.body) else {
        return reply.refuse("the body is neither a flat JSON object nor a query")
      }
      parameters = Parameters(pairs: parameters.pairs + sent.pairs)
    }
    do throws(FaultError) {
      faults.add(try Fault(parameters))
      reply.send(status: 204)
    } catch {
      reply.refuse(error.description)
    }
  }

  private func replaceZone(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    do throws(ZoneError) {
      let text = String(decoding: request.body, as: UTF8.self)
      service.zone = try ZoneParser.parse(text, defaultTTL: service.zone.defaultTTL)
      reply.send(status: 204)
    } catch {
      reply.refuse(error.description)
    }
  }
}

extension HTTPServerReply {
  fileprivate func sendJSON(_ body: [UInt8]) {
    send(status: 200, fields: [HTTPServerField("Content-Type", "application/json")], body: body)
  }

  fileprivate func refuse(_ reason: String) { send(status: 400, body: Array("\(reason)\n".utf8)) }
}

/// Parameters from a body: a JSON object of texts, numbers and switches, or `name=value&…`.
func faultParameters(_ body: [UInt8]) -> Parameters? {
  guard body.first == UInt8(ascii: "{") else { return Parameters(query: String(decoding: body, as: UTF8.self)) }
  var text: OpaquePointer?
  var object = json_value()
  guard body.withUnsafeBytes({ json_open($0.baseAddress, $0.count, &text, &object) }) == JSON_READ else { return nil }
  defer { json_close(text) }
  var pairs: [(name: String, value: [UInt8])] = []
  var members = json_iterate(object)
  var name = json_string()
  var value = json_value()
  while json_next_member(&members, &name, &value) {
    guard let plain = plainText(value) else { return nil }
    pairs.append((String(cString: name.octets), Array(plain.utf8)))
  }
  return Parameters(pairs: pairs)
}

/// A JSON text, number or switch as text; nil for anything that has parts.
private func plainText(_ value: json_value) -> String? {
  switch json_kind_of(value) {
  case JSON_STRING:
    var string = json_string()
    return json_string_of(value, &string) ? String(cString: string.octets) : nil
  case JSON_INTEGER:
    var number: Int64 = 0
    return json_signed_of(value, &number) ? "\(number)" : nil
  case JSON_REAL:
    var number = 0.0
    return json_double_of(value, &number) ? "\(number)" : nil
  case JSON_TRUE: return "true"
  case JSON_FALSE: return "false"
  default: return nil
  }
}

private func faultsJSON(_ faults: [Fault]) -> [UInt8] {
  var json = JSONWriter()
  json.beginArray()
  for fault in faults {
    json.beginObject()
    json.key("kind")
    json.string(fault.kind.rawValue)
    json.key("remaining")
    if let remaining = fault.remaining { json.number(remaining) } else { json.null() }
    json.key("ms")
    json.number(fault.delay.components.seconds * 1_000 + fault.delay.components.attoseconds / 1_000_000_000_000_000)
    json.endObject()
  }
  json.endArray()
  return json.octets
}
