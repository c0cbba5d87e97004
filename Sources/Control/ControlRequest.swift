// ControlRequest.swift -- the protocol of the control socket's commands, and the list of them.

import HTTPMessage
import HTTPServer

/// A command of the control socket: its method and path, and its parameters.
protocol ControlCommand: Sendable {
  /// The only method that its path accepts.
  static var method: HTTPMethod { get }
  /// Must differ from the paths of all other commands.
  static var path: String { get }

  /// Reads the query and the body.
  init(_ request: HTTPServerRequest) throws(ControlRefusal)

  /// Replies at once or later. On the loop's thread.
  func serve(_ reply: HTTPServerReply, _ form: ControlForm, by handler: ControlHandler) throws(ControlRefusal)
}

/// A command with one answer: all but `GET /tail`, which is a stream.
protocol ControlRequest: ControlCommand {
  /// Does the work. Called from a task that prefers the loop.
  func answer(from actions: any ControlActions) async -> any ControlText
}

extension ControlRequest {
  func serve(_ reply: HTTPServerReply, _ form: ControlForm, by handler: ControlHandler) {
    handler.answer(reply, form, self)
  }
}

enum ControlRequests {
  /// All types in `Commands`.
  static let all: [any ControlCommand.Type] = [
    StatsRequest.self, FlushRequest.self, CacheRequest.self, ProvidersRequest.self, RefreshRequest.self,
    ReportRequest.self, ReportBadRequest.self, ReloadRequest.self, ConfigurationRequest.self, TailRequest.self,
    FleetRequest.self, ListsRequest.self, SetsRequest.self, DashboardRequest.self,
  ]
}

/// Why a request is not answered.
package struct ControlRefusal: Error, Equatable {
  /// The status of the response.
  package var status: Int
  /// One line.
  package var reason: String
}

/// An answer in both forms.
protocol ControlText: Sendable {
  /// Complete lines.
  var text: String { get }
  /// A JSON object.
  var json: String { get }
  /// Whether nothing was found, or a part of the request failed.
  var isIncomplete: Bool { get }
  /// The status of the response; with another one than 200 the text is a refusal of one line.
  var status: Int { get }
}

extension ControlText {
  var isIncomplete: Bool { false }
  var status: Int { 200 }
}
