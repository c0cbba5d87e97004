// Control.swift -- the paths below `/_simulator/`: faults, the record of requests, the zone.
//
//   POST   /_simulator/fault?kind=…   adds a fault; the parameters may also be the body, as JSON or as a query
//   GET    /_simulator/fault          the faults in force
//   DELETE /_simulator/fault          removes them
//   GET    /_simulator/requests       the requests that are kept, oldest first
//   GET    /_simulator/count          how many transfers, connections, and of which questions
//   DELETE /_simulator/requests, /_simulator/count    forgets requests and counters
//   GET    /_simulator/settings       the settings and their values; Settings.swift says what they do
//   POST   /_simulator/settings?…     changes some, by name=value; also as the body, all or none
//   DELETE /_simulator/settings       back to those of the start
//   PUT    /_simulator/zone           the body is the zone from now on
//   DELETE /_simulator/zone           back to the zone of the start

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
    case (.get, "settings"): reply.sendJSON(service.options.settingsJSON)
    case (.post, "settings"): changeSettings(request, reply)
    case (.delete, "settings"):
      restoreSettings()
      reply.send(status: 204)
    case (.put, "zone"): replaceZone(request, reply)
    case (.delete, "zone"):
      restoreZone()
      reply.send(status: 204)
    case (_, "fault"), (_, "requests"), (_, "count"), (_, "settings"), (_, "zone"): reply.send(status: 405)
    default: reply.send(status: 404)
    }
  }

  private func addFault(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard let parameters = controlParameters(request, reply) else { return }
    do throws(FaultError) {
      faults.add(try Fault(parameters))
      reply.send(status: 204)
    } catch {
      reply.refuse(error.description)
    }
  }

  private func changeSettings(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard let parameters = controlParameters(request, reply) else { return }
    do throws(SettingError) {
      try service.options.take(parameters)
      reply.send(status: 204)
    } catch {
      reply.refuse(error.description)
    }
  }

  /// The parameters of the query and of the body; nil where the request is refused for its body.
  private func controlParameters(_ request: HTTPServerRequest, _ reply: HTTPServerReply) -> Parameters? {
    let parameters = Parameters(query: request.query)
    guard !request.body.isEmpty else { return parameters }
    guard let sent = bodyParameters(request.body) else {
      reply.refuse("the body is neither a flat JSON object nor a query")
      return nil
    }
    return Parameters(pairs: parameters.pairs + sent.pairs)
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
