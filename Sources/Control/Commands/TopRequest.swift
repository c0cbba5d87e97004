// TopRequest.swift -- `GET /top`: the numbers for `httpdnsd top`.

import HTTPMessage
import Forwarder
import HTTPServer

/// A request for the numbers of `top`.
struct TopRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/top"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    TopSample(await actions.numbers(), names: await actions.names().reports)
  }
}

extension ControlClient {
  /// The numbers for `top`.
  public func sample() throws(ControlClientError) -> TopSample {
    let answer = try ask(TopRequest.self, .text)
    guard let sample = TopSample(text: answer.content) else { throw .unreadable(path: path) }
    return sample
  }
}
