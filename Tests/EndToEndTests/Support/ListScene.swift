// ListScene.swift -- what tests of lists start: a provider, files of names, a daemon with a state directory of its own.

import DNSWire
import Foundation
import Testing

/// The surroundings of a daemon with lists.
final class ListScene {
  let lab: Lab
  let simulator: Simulator
  var settings: Settings
  /// The state directory, which outlives the daemon.
  let state: String
  let socket: String

  init(_ lab: Lab) throws {
    self.lab = lab
    simulator = try lab.simulator()
    settings = Settings(Settings.json(simulator.http))
    socket = settings.openControl(in: lab)
    state = "\(lab.folder.path)/state"
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: false)
  }

  /// The names of the copies in the state directory.
  var copies: [String] {
    let names = try? FileManager.default.contentsOfDirectory(atPath: "\(state)/lists")
    return (names ?? []).filter { !$0.contains(".") }
  }

  var environment: [String: String] { ["STATE_DIRECTORY": state] }

  /// Starts a daemon with these rules.
  func daemon(_ rules: String) throws -> Daemon {
    settings.more = rules
    return try lab.daemon(settings.text, environment: environment)
  }

  /// Writes a file of names, and returns its path.
  func file(_ name: String, _ lines: String...) throws -> String {
    try lab.folder.write(lines.map { "\($0)\n" }.joined(), to: name)
  }

  /// Replaces a file as editors and configuration management do.
  func replace(_ path: String, _ lines: String...) throws {
    let fresh = "\(path).fresh"
    try Data(lines.map { "\($0)\n" }.joined().utf8).write(to: URL(fileURLWithPath: fresh))
    guard rename(fresh, path) == 0 else { throw Failure("cannot rename \(fresh)") }
  }

  /// Runs a command that reaches the daemon by its control socket.
  func control(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
    try lab.run(arguments + ["--socket", socket])
  }

  /// Runs a command that reads the configuration file, and the state directory as the daemon does.
  func command(_ name: String, _ arguments: String...) throws -> (
    ending: ChildProcess.Ending, output: String, error: String
  ) {
    try lab.run([name, "--config", lab.file(settings.text)] + arguments, environment: environment)
  }
}

/// Runs a test with a provider and no daemon yet.
func withLists(_ body: (ListScene) throws -> Void) throws {
  try withLab { lab in try body(ListScene(lab)) }
}

/// A rule with lists.
func listRule(_ lists: [String], _ use: String = "nxdomain", name: String? = nil, _ more: String = "") -> String {
  let name = name.map { "name = \"\($0)\"\n" } ?? ""
  return "[[rule]]\n\(name)lists = \(quoted(lists))\nuse = \"\(use)\"\n\(more)\n"
}

extension Daemon {
  /// Waits until a name is answered with that code.
  func waitFor(
    _ code: ResponseCode, _ name: String, within duration: Duration = .seconds(10), from host: String? = nil
  ) throws {
    try eventually("\(code) for \(name)", within: duration) {
      try ask(address, TestQuery(name), from: host).code == code ? true : nil
    }
  }

  /// Waits until that many lines of the log have that text; they may be read after the answer that they are about.
  func waitFor(_ count: Int, lines text: String) throws {
    do { try eventually("\(count) lines") { self.count(text) == count ? true : nil } } catch {
      throw Failure("\(self.count(text)) lines instead of \(count) with \(text):\n\(log)")
    }
  }

  /// How many lines of the log have that text.
  func count(_ text: String) -> Int { log.components(separatedBy: "\n").filter { $0.contains(text) }.count }
}
