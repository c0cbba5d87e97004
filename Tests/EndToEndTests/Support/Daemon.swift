// Daemon.swift -- a running httpdnsd.

import Foundation
import Testing

/// `httpdnsd run` with a configuration, on ports that it chose.
final class Daemon {
  let process: ChildProcess
  /// The path of its configuration.
  let configuration: String
  /// Where it listens, in the order of `listen.addresses` as far as they exist.
  let addresses: [Address]
  private let sourceLocation: SourceLocation
  private var isEnded = false

  /// Starts a daemon, and waits until it is ready.
  ///
  /// - Parameters:
  ///   - prefix: a command that becomes the daemon, such as one that enters a namespace.
  ///   - descriptors: what it inherits, from 3 on.
  init(
    _ configuration: String, environment: [String: String], prefix: [String] = [], descriptors: [Int32] = [],
    sourceLocation: SourceLocation
  ) throws {
    self.sourceLocation = sourceLocation
    self.configuration = configuration
    let command = prefix + [Programs.daemon, "run", "--config", configuration]
    var (process, addresses) = try Daemon.start(command, environment, descriptors)
    // The port that TCP got can be some other program's over UDP.
    for _ in 0..<3 where addresses == nil { (process, addresses) = try Daemon.start(command, environment, descriptors) }
    guard let addresses else { throw Failure("httpdnsd did not start: \(process.text(.error))") }
    (self.process, self.addresses) = (process, addresses)
  }

  private static func start(
    _ command: [String], _ environment: [String: String], _ descriptors: [Int32]
  ) throws -> (ChildProcess, [Address]?) {
    let variables = try ["LD_PRELOAD": Programs.lookupRefusal()].merging(environment) { $1 }
    let process = try ChildProcess(command, environment: variables, descriptors: descriptors)
    let isReady = try process.wait(for: "ready", in: .error) { text in
      let isReady = text.contains(" ready\n") || text.contains("\"message\":\"ready\"")
      return isReady ? true : text.contains(": Address already in use") ? false : nil
    }
    guard isReady else { return (process, nil) }
    let lines = process.text(.error).matches(of: /listening on (\S+), (?:UDP|TCP)/)
    return (process, lines.compactMap { Address(text: $0.1) })
  }

  /// The first address.
  var address: Address { addresses[0] }

  /// Everything that it has written to its log.
  var log: String { process.text(.error) }

  /// Waits until something stands in its log.
  func waitForLog(_ text: String) throws {
    try process.wait(for: text, in: .error) { $0.contains(text) ? true : nil }
  }

  /// A file about it in /proc.
  func kernelFile(_ name: String) throws -> String {
    // Read to its end: such a file says that it has no size, and comes in pieces.
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(process.pid)/\(name)"))
    return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
  }

  /// The descriptors that it has open; none are seen but by root, as the program keeps its memory private.
  var descriptors: Set<Int> {
    Set(
      ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd")) ?? []).compactMap { Int($0) })
  }

  /// How many descriptors it has open, where they are seen: the tests of an ordinary user judge the rest.
  var descriptorCount: Int { descriptors.count }

  /// Its resident memory in MiB.
  var residentMebibytes: Int {
    let status = try? kernelFile("status")
    return status?.firstMatch(of: /VmRSS:\s+(\d+) kB/).flatMap { Int($0.1) }.map { $0 / 1_024 } ?? 0
  }

  /// Ends it by SIGKILL, whatever it is doing; it may have ended already.
  func kill() throws {
    isEnded = true
    process.signal(SIGKILL)
    _ = try process.waitForEnd()
  }

  /// Ends it as systemd does, and checks that it ends well.
  func end() {
    guard !isEnded else { return }
    isEnded = true
    let ending = process.end()
    #expect(ending == .exited(0), "\(log.suffix(2_000))", sourceLocation: sourceLocation)
  }
}

extension Trait where Self == ConditionTrait {
  /// For a test that looks into the program.
  static var looksInside: Self {
    .enabled(if: geteuid() == 0, "only root may look into a program that keeps its memory private")
  }
}
