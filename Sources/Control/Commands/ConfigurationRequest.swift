// ConfigurationRequest.swift -- `GET /configuration`: the path of the file that a reload reads.

import HTTPMessage
import HTTPServer
import Telemetry

/// A request for the path of the configuration.
struct ConfigurationRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/configuration"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    ConfigurationText(file: actions.file)
  }
}

/// The file of the configuration.
struct ConfigurationText: ControlText {
  let file: String

  var text: String { "\(file)\n" }

  var json: String { JSONText.object(["file": JSONText.string(file)]) }
}

extension ControlClient {
  /// The path of the file that the daemon reads; nil where it is of a version that does not say so.
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
