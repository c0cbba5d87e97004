// ControlHandler.swift -- answers requests on the control socket, in human-readable text or JSON.
//
// `ControlRequests.all` lists the commands.
//
// The answer is JSON if the Accept field is `application/json`. A refusal is a line of text. If nothing was found, or a
// part of the request failed, the response has the field `Result: nothing`.

import EventLoop
import HTTPMessage
import HTTPServer
import Persistence

/// Loop's thread only.
struct ControlHandler {
  let loop: any Loop
  let actions: any ControlActions
  let tails: TailService

  /// Marks an answer that found nothing, or of which a part failed.
  static let nothing = HTTPField("Result", "nothing")

  /// Answers at once or when the work is done.
  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard let command = ControlRequests.all.first(where: { $0.path == request.path }) else {
      return refuse(reply, ControlRefusal(status: 404, reason: "this version has no such command"))
    }
    guard request.method == command.method else {
      let method = command.method.rawValue
      return refuse(reply, ControlRefusal(status: 405, reason: "only \(method) is allowed"), allow: method)
    }
    do throws(ControlRefusal) {
      try command.init(request).serve(reply, form(of: request), by: self)
    } catch { refuse(reply, error) }
  }

  private func form(of request: HTTPServerRequest) -> ControlForm {
    request.field("Accept") == ControlForm.json.contentType ? .json : .text
  }

  /// Answers when the work of the request is done.
  func answer(_ reply: HTTPServerReply, _ form: ControlForm, _ request: any ControlRequest) {
    loop.startTask { [actions, loop] in
      let text = await request.answer(from: actions)
      guard text.status == 200 else { return reply.send(status: text.status, fields: [], body: Array(text.text.utf8)) }
      // A thousand names take 30 ms.
      let body = await BlockingTask.value("answer", on: loop) {
        Array((form == .json ? text.json + "\n" : text.text).utf8)
      }
      // Several may be done at the same time.
      await loop.waitInQueue()
      let fields = [HTTPField("Content-Type", form.contentType)]
      reply.send(status: 200, fields: fields + (text.isIncomplete ? [ControlHandler.nothing] : []), body: body)
    }
  }

  /// Answers at once.
  func send(_ reply: HTTPServerReply, _ form: ControlForm, _ text: any ControlText) {
    let body = form == .json ? text.json + "\n" : text.text
    reply.send(status: 200, fields: [HTTPField("Content-Type", form.contentType)], body: Array(body.utf8))
  }

  private func refuse(_ reply: HTTPServerReply, _ refusal: ControlRefusal, allow: String? = nil) {
    reply.send(
      status: refusal.status, fields: allow.map { [HTTPField("Allow", $0)] } ?? [],
      body: Array("\(refusal.reason)\n".utf8))
  }
}

/// The form of an answer.
public enum ControlForm: Sendable {
  /// Human-readable.
  case text
  /// One JSON object.
  case json

  /// The value of Accept and of Content-Type.
  var contentType: String {
    switch self {
    case .text: "text/plain; charset=utf-8"
    case .json: "application/json"
    }
  }
}
