// Lab.swift -- what one test starts, and the end of it all.

import Foundation
import Testing

/// The programs of one test.
final class Lab {
  let folder: TemporaryFolder
  private(set) var daemons: [Daemon] = []
  private var others: [ChildProcess] = []
  private var files = 0
  private var silent: [Socket] = []

  fileprivate init() throws { folder = try TemporaryFolder() }

  /// Starts a daemon with a configuration.
  ///
  /// - Parameters:
  ///   - prefix: a command that becomes the daemon.
  ///   - descriptors: what it inherits, from 3 on.
  func daemon(
    _ configuration: String, environment: [String: String] = [:], prefix: [String] = [], descriptors: [Int32] = [],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Daemon {
    let daemon = try Daemon(
      file(configuration), environment: environment, prefix: prefix, descriptors: descriptors,
      sourceLocation: sourceLocation)
    daemons.append(daemon)
    return daemon
  }

  /// Starts a simulator.
  func simulator(_ arguments: String..., https: Bool = false) throws -> Simulator {
    try simulator(arguments, https: https)
  }

  /// Starts a simulator.
  func simulator(_ arguments: [String], at host: String = "127.0.0.1", https: Bool = false) throws -> Simulator {
    let authority = https ? "\(folder.path)/ca-\(others.count).pem" : nil
    let simulator = try Simulator(arguments, at: host, authority: authority)
    others.append(simulator.process)
    return simulator
  }

  /// An address without a listener. Its port stays reserved to the end of the test, so that no other socket gets it.
  func closedAddress() throws -> Address {
    let (udp, tcp) = try Socket.pair()
    silent += [udp, tcp]
    return tcp.address
  }

  /// Starts any other program.
  func start(
    _ arguments: [String], environment: [String: String] = [:], descriptors: [Int32] = []
  ) throws -> ChildProcess {
    let process = try ChildProcess(arguments, environment: environment, descriptors: descriptors)
    others.append(process)
    return process
  }

  /// Writes a configuration file, and returns its path.
  func file(_ text: String) throws -> String {
    files += 1
    return try folder.write(text, to: "httpdnsd-\(files).toml")
  }

  /// Runs `httpdnsd` to its end, with the lookups of libc refused as everywhere.
  func run(
    _ arguments: String..., environment: [String: String] = [:]
  ) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
    try run(arguments, environment: environment)
  }

  /// Runs `httpdnsd` to its end, with the lookups of libc refused as everywhere.
  func run(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
    let variables = try ["LD_PRELOAD": Programs.lookupRefusal()].merging(environment) { $1 }
    return try ChildProcess.run([Programs.daemon] + arguments, environment: variables)
  }

  fileprivate func end() {
    for daemon in daemons { daemon.end() }
    for process in others { process.end() }
  }
}

/// Runs a test with programs, which end with it; a daemon that does not end as it should is a failure.
func withLab(_ body: (Lab) throws -> Void) throws {
  let lab = try Lab()
  defer { lab.end() }
  try body(lab)
}
