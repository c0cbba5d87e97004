// DashboardRequest.swift -- `POST /dashboard`: an address with a code that signs a browser in.

import HTTPMessage
import HTTPServer
import JSON

struct DashboardRequest: ControlCommand {
  static let method = HTTPMethod.post
  static let path = "/dashboard"

  init(_: HTTPServerRequest) {}

  func serve(_ reply: HTTPServerReply, _ form: ControlForm, by handler: ControlHandler) throws(ControlRefusal) {
    guard let user = reply.peerUser else { throw ControlRefusal(status: 403, reason: "the user is not known") }
    guard let code = handler.actions.makeDashboardCode(for: user) else {
      throw ControlRefusal(
        status: 409, reason: "the dashboard is off: web.address and web.dashboard = true switch it on")
    }
    handler.send(reply, form, DashboardText(code: code))
  }
}

struct DashboardText: ControlText {
  let code: DashboardCode

  private var url: String { "\(code.place)/dashboard#\(code.code)" }

  var text: String { "\(url)\n\(code.hint.map { "\($0)\n" } ?? "")" }

  var json: String {
    JSONText.object(["url": JSONText.string(url), "hint": code.hint.map(JSONText.string)])
  }
}

extension ControlClient {
  /// Returns the address at which a browser signs in to the dashboard, once and within a minute.
  public func dashboard(_ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(DashboardRequest.self, form)
  }
}
