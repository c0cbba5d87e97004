// ControlHandler.swift -- from a request on the control socket to its answer, as text for a person or as JSON.
//
//   GET /stats[?by-name]
//   POST /flush[?below]     names in the body, one a line; without any it means everything
//   GET /cache?name=NAME    percent-encoded
//   GET /providers
//   POST /refresh           a name and types, one a line; without types it means those that are kept
//   POST /report-bad        a name and an address, one a line
//   GET /top                for `httpdnsd top`
//
// JSON comes where the Accept field is `application/json`. A refusal is a line of text. An answer that finds nothing, or
// where something that was asked for has failed, has the field `Result: nothing`.

import DNSWire
import EventLoop
import Forwarder
import HTTPServer

/// Answers requests. Loop's thread only.
struct ControlHandler {
  let loop: any Loop
  let actions: ControlActions

  /// What tells a client that there is nothing.
  static let nothing = HTTPServerField("Result", "nothing")

  /// Answers, now or when the work is done.
  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    do throws(ControlRefusal) {
      guard let work = try work(request) else { return refuse(reply, request) }
      answer(reply, request.field("Accept") == ControlForm.json.contentType ? .json : .text, work)
    } catch { refuse(reply, error) }
  }

  /// What a request asks for; nil where there is no such command.
  private func work(
    _ request: HTTPServerRequest
  ) throws(ControlRefusal) -> (@Sendable () async -> any ControlText)? {
    let actions = actions
    switch (request.method, request.path) {
    case (.get, "/stats"):
      guard request.query == nil || request.query == "by-name" else {
        throw ControlRefusal(status: 400, reason: "an unknown parameter; by-name is known")
      }
      let isByName = request.query != nil
      return {
        if isByName { return NamesText(await actions.names()) }
        return StatsText(numbers: await actions.numbers())
      }
    case (.post, "/flush"):
      let names = try FlushRequest(request).names
      return { FlushText(counts: await actions.flush(names)) }
    case (.get, "/cache"):
      let name = try DomainName(request)
      return { ContentText(name: name, content: await actions.content(name)) }
    case (.get, "/providers"):
      return { ProvidersText(reports: await actions.providers()) }
    case (.post, "/refresh"):
      let wanted = try RefreshRequest(request)
      return {
        RefreshText(name: wanted.name, summary: await actions.refresh(wanted.name, wanted.types))
      }
    case (.post, "/report-bad"):
      let bad = try BadAddressRequest(request)
      return {
        BadAddressText(
          name: bad.name, address: bad.address, outcome: await actions.reportBad(bad.address, bad.name))
      }
    case (.get, "/top"):
      return {
        TopSample(await actions.numbers(), names: await actions.names().reports)
      }
    default: return nil
    }
  }

  private func answer(
    _ reply: HTTPServerReply, _ form: ControlForm,
    _ work: @escaping @Sendable () async -> any ControlText
  ) {
    // The reply stays on the loop's thread: the task prefers it, and nothing else has the reply.
    nonisolated(unsafe) let reply = reply
    Task(executorPreference: loop) {
      let text = await work()
      let body = form == .json ? text.json + "\n" : text.text
      let fields = [HTTPServerField("Content-Type", form.contentType)]
      reply.send(
        status: 200, fields: fields + (text.isNothing ? [ControlHandler.nothing] : []), body: Array(body.utf8))
    }
  }

  private func refuse(_ reply: HTTPServerReply, _ request: HTTPServerRequest) {
    let methods = ["/stats": "GET", "/cache": "GET", "/providers": "GET", "/top": "GET"]
      .merging(["/flush": "POST", "/refresh": "POST", "/report-bad": "POST"]) { $1 }
    guard let method = methods[request.path] else {
      return refuse(reply, ControlRefusal(status: 404, reason: "this version has no such command"))
    }
    refuse(reply, ControlRefusal(status: 405, reason: "only \(method)"), allow: method)
  }

  private func refuse(_ reply: HTTPServerReply, _ refusal: ControlRefusal, allow: String? = nil) {
    reply.send(
      status: refusal.status, fields: allow.map { [HTTPServerField("Allow", $0)] } ?? [],
      body: Array("\(refusal.reason)\n".utf8))
  }
}

/// In which form an answer is wanted.
public enum ControlForm: Sendable {
  /// For a person.
  case text
  /// For a program.
  case json

  /// The value of Accept and of Content-Type.
  var contentType: String {
    switch self {
    case .text: "text/plain; charset=utf-8"
    case .json: "application/json"
    }
  }
}

/// Why a request is not answered.
struct ControlRefusal: Error, Equatable {
  /// The status of the response.
  var status: Int
  /// One line.
  var reason: String
}

/// An answer in both forms.
protocol ControlText: Sendable {
  /// Whole lines.
  var text: String { get }
  /// A JSON object.
  var json: String { get }
  /// Whether nothing was found, or something that was asked for has failed.
  var isNothing: Bool { get }
}

extension ControlText {
  var isNothing: Bool { false }
}
