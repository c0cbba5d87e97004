// ControlOptions.swift -- how a subcommand finds the running daemon, and prints its answer.

import ArgumentParser
import Configuration
import Control
import DNSWire
import Glibc

/// The options of each command that talks to a running daemon.
struct ControlOptions: ParsableArguments {
  @OptionGroup var options: ConfigurationOption

  @Option(
    help: ArgumentHelp(
      "The daemon's control socket, instead of the one in the configuration.", valueName: "path"),
    completion: .file())
  var socket: String?

  @Flag(help: "Print JSON.")
  var json = false

  /// Asks the daemon, and prints its answer.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr; `ControlOptions.nothing` where nothing was
  ///   found, or a part of the request has failed.
  func report(_ ask: (ControlClient, ControlForm) throws(ControlClientError) -> ControlAnswer) throws {
    let client = ControlClient(path: try path())
    let answer: ControlAnswer
    do throws(ControlClientError) {
      answer = try ask(client, form)
    } catch {
      let hint = isWithoutFile ? " (\(options.config): no such file; --socket PATH names another socket)" : ""
      Console.error("httpdnsd: \(error)\(hint)")
      throw ExitCode.failure
    }
    try show(answer)
  }

  /// The form of the answer.
  var form: ControlForm { json ? .json : .text }

  /// Prints the daemon's answer.
  ///
  /// - Throws: `ControlOptions.nothing` as `report` does.
  func show(_ answer: ControlAnswer) throws {
    print(answer.content, terminator: "")
    if answer.isNothing { throw ControlOptions.nothing }
  }

  /// Says why the daemon did not do it.
  static func failure(_ error: ControlClientError) -> ExitCode {
    Console.error("httpdnsd: \(error)")
    return .failure
  }

  /// Nothing was found, or a part of the request has failed.
  static let nothing = ExitCode(2)

  /// A domain name on the command line.
  static func check(_ name: String) throws { _ = try DomainName(argument: name) }

  /// The path of the socket; nil where the configuration switches it off.
  func find() throws(Mistakes) -> String? {
    if let socket { return socket }
    return try Configuration.control(path: options.config).socket
  }

  /// Whether the file does not exist.
  private var hasNoFile: Bool { access(options.config, F_OK) != 0 && errno == ENOENT }

  /// Whether nothing says where the socket is: no option, and no file in the usual place.
  private var isWithoutFile: Bool { socket == nil && options.given == nil && hasNoFile }

  /// A message for a missing configuration, which would name the socket; nil where it exists.
  var missingFile: String? {
    guard socket == nil, hasNoFile else { return nil }
    return
      "httpdnsd: \(options.config): no such file; --config FILE names the daemon's configuration, or --socket PATH its "
      + "control socket"
  }

  /// The path of the socket; without a configuration the usual one.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  func path() throws -> String {
    if isWithoutFile, let usual = Configuration.usualControl().socket { return usual }
    if let missingFile {
      Console.error(missingFile)
      throw ExitCode.failure
    }
    let path: String?
    do throws(Mistakes) {
      path = try find()
    } catch {
      for mistake in error.mistakes { Console.error("\(mistake)") }
      Console.error("httpdnsd: --socket PATH names the daemon's control socket without a configuration")
      throw ExitCode.failure
    }
    guard let path else { throw switchedOff() }
    return path
  }

  /// Says that the control socket is switched off.
  func switchedOff() -> ExitCode {
    Console.error("httpdnsd: the control socket is switched off: control.socket is \"\" in \(options.config)")
    return .failure
  }
}
