// ConfigurationRequest.swift -- `GET /configuration`: the file that a reload reads, and the address of instance names.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

struct ConfigurationRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/configuration"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    ConfigurationText(file: actions.file, instance: actions.instance)
  }
}

struct ConfigurationText: ControlText {
  let file: String
  let instance: IPAddress

  var text: String { "\(file)\n" }

  var json: String { JSONText.object(["file": JSONText.string(file), "instance": JSONText.string("\(instance)")]) }
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

  /// Returns the file that the daemon reads, and the address that it answers to questions for an `InstanceName`; nil if the
  /// daemon's version does not say.
  public func instance() throws(ControlClientError) -> (file: String, address: IPAddress)? {
    do throws(ControlClientError) {
      let answer = try ask(ConfigurationRequest.self, .json)
      let texts = try? withStats(answer.content) { root throws(UnreadableStats) in
        (try root.text("file"), try root.text("instance"))
      }
      return texts.flatMap { file, instance in IPAddress(text: instance).map { (file, $0) } }
    } catch .refused {
      return nil
    } catch { throw error }
  }
}
