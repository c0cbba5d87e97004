// ConfigurationRequest.swift -- `GET /configuration`: the path of the file that a reload reads.

import HTTPMessage
import HTTPServer
import Telemetry

struct ConfigurationRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/configuration"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    ConfigurationText(file: actions.file)
  }
}

struct ConfigurationText: ControlText {
  let file: String

  var text: String { "\(file)\n" }

  var json: String { JSONText.object(["file": JSONText.string(file)]) }
}

extension ControlClient {
  /// Returns the path of the file that the daemon reads; nil if the daemon's version does not have this command.
  public func file() throws(ControlClientError) -> String? {
    do throws(ControlClientError) {
      let path = try ask(ConfigurationRequest.self, .text).content.dropLast()
      guard path.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
        throw .unreadable(path: self.path)
      }
      return String(path)
    } catch .refused {
      return nil
    } catch { throw error }
  }
}
