// ControlHandler.swift -- from a request on the control socket to its answer, as text for a person or as JSON.
//
//   POST /flush[?below]   names in the body, one a line; without any it means everything
//   GET /providers
//
// JSON comes where the Accept field is `application/json`. A refusal is a line of text.

import EventLoop
import HTTPServer

/// Answers requests. Loop's thread only.
struct ControlHandler {
  let loop: any Loop
  let actions: ControlActions

  /// Answers, now or when the work is done.
  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    let form: ControlForm = request.field("Accept") == ControlForm.json.contentType ? .json : .text
    switch (request.method, request.path) {
    case (.post, "/flush"):
      do throws(ControlRefusal) {
        let names = try FlushRequest(request).names
        answer(reply, form) { [actions] in FlushText(counts: await actions.flush(names)) }
      } catch { refuse(reply, error) }
    case (.get, "/providers"):
      answer(reply, form) { [actions] in ProvidersText(reports: await actions.providers()) }
    case (_, "/flush"): refuse(reply, ControlRefusal(status: 405, reason: "only POST"), allow: "POST")
    case (_, "/providers"): refuse(reply, ControlRefusal(status: 405, reason: "only GET"), allow: "GET")
    default: refuse(reply, ControlRefusal(status: 404, reason: "this version has no such command"))
    }
  }

  private func answer(
    _ reply: HTTPServerReply, _ form: ControlForm, _ work: @escaping @Sendable () async -> some ControlText
  ) {
    // The reply stays on the loop's thread: the task prefers it, and nothing else has the reply.
    nonisolated(unsafe) let reply = reply
    Task(executorPreference: loop) {
      let text = await work()
      let body = form == .json ? text.json + "\n" : text.text
      reply.send(
        status: 200, fields: [HTTPServerField("Content-Type", form.contentType)], body: Array(body.utf8))
    }
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
}
