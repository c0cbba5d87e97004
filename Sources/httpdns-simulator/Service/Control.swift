// Control.swift -- the paths below `/_simulator/`: faults, the record of requests, settings, the zone.
//
//   POST   /_simulator/fault?kind=…   adds a fault; the parameters may also be the body, as JSON or as a query
//   GET    /_simulator/fault          returns the active faults
//   DELETE /_simulator/fault          removes all faults
//   GET    /_simulator/requests       returns the recorded requests, oldest first
//   GET    /_simulator/count          returns counters of transfers, connections, questions and units
//   DELETE /_simulator/requests, /_simulator/count    clears requests and counters
//   GET    /_simulator/settings       returns the settings and their values; see Settings.swift
//   POST   /_simulator/settings?…     changes settings by name=value, also from the body; all or none
//   DELETE /_simulator/settings       restores the settings of the start
//   PUT    /_simulator/zone           replaces the zone with the body
//   DELETE /_simulator/zone           restores the zone of the start

import EventLoop
import HTTPMessage
import HTTPServer
import JSON

private let controlPrefix = "/_simulator/"

/// Whether a request is for the simulator itself and not for the service.
func isControl(_ request: HTTPServerRequest) -> Bool { request.path.hasPrefix(controlPrefix) }

extension Simulator {
  /// Answers a request for the simulator itself.
  func control(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard isControl(request) else { return reply.send(status: 404) }
    switch (request.method, request.path.dropFirst(controlPrefix.count)) {
    case (.post, "fault"): change(reply) { faults.add(try Fault(try parameters(of: request))) }
    case (.get, "fault"): reply.sendJSON(faultsJSON(faults.faults))
    case (.delete, "fault"): change(reply) { faults.clear() }
    case (.get, "requests"): reply.sendJSON(record.requestsJSON)
    case (.get, "count"): reply.sendJSON(record.countJSON(connections: connectionCount))
    case (.delete, "requests"), (.delete, "count"): change(reply) { record.clear() }
    case (.get, "settings"): reply.sendJSON(service.options.settingsJSON)
    case (.post, "settings"): change(reply) { try service.options.take(try parameters(of: request)) }
    case (.delete, "settings"): change(reply) { restoreSettings() }
    case (.put, "zone"): change(reply) { try replaceZone(by: String(decoding: request.body, as: UTF8.self)) }
    case (.delete, "zone"): change(reply) { restoreZone() }
    case (_, "fault"), (_, "requests"), (_, "count"), (_, "settings"), (_, "zone"): reply.send(status: 405)
    default: reply.send(status: 404)
    }
  }

  /// Makes a change, or refuses it with the reason that `body` throws.
  private func change(_ reply: HTTPServerReply, _ body: () throws -> Void) {
    do {
      try body()
      reply.send(status: 204)
    } catch {
      reply.send(status: 400, body: Array("\(error)\n".utf8))
    }
  }

  /// The parameters of the query and of the body.
  private func parameters(of request: HTTPServerRequest) throws(SimulatorError) -> Parameters {
    let parameters = Parameters(query: request.query)
    guard !request.body.isEmpty else { return parameters }
    guard let sent = bodyParameters(request.body) else {
      throw SimulatorError(description: "the body is neither a flat JSON object nor a query")
    }
    return Parameters(pairs: parameters.pairs + sent.pairs)
  }

  private func replaceZone(by text: String) throws(ZoneError) {
    service.zone = try ZoneParser.parse(text, defaultTTL: service.zone.defaultTTL)
  }
}

extension HTTPServerReply {
  fileprivate func sendJSON(_ body: [UInt8]) {
    send(status: 200, fields: [HTTPField("Content-Type", "application/json")], body: body)
  }
}

private func faultsJSON(_ faults: [Fault]) -> [UInt8] {
  let objects = faults.map { fault in
    JSONText.object([
      "kind": JSONText.string(fault.kind.rawValue),
      "remaining": fault.remaining.map { "\($0)" } ?? "null",
      "ms": "\(fault.delay.nanoseconds / 1_000_000)",
    ])
  }
  return Array(JSONText.array(objects).utf8)
}
