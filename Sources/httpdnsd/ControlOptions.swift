// ControlOptions.swift -- finds the running daemon for a subcommand, and prints its answer.

import ArgumentParser
import Configuration
import Control
import DNSWire
import Glibc

/// The options of each command that talks to a running daemon.
struct ControlOptions: ParsableArguments {
  @OptionGroup var options: ConfigurationOption

  @Option(
    help: ArgumentHelp("The daemon's control socket, instead of the one in the configuration.", valueName: "path"),
    completion: .file())
  var socket: String?

  @Flag(help: "Print JSON.") var json = false

  /// Asks the daemon, and prints its answer.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr; `ControlOptions.nothing` if nothing was
  ///   found or a part of the request failed.
  ///
  /// - Parameter patience: the time limit; nil for the usual one.
  func report(
    patience: Duration? = nil, _ ask: (ControlClient, ControlForm) throws(ControlClientError) -> ControlAnswer
  ) throws {
    let path = try path()
    let client = patience.map { ControlClient(path: path, patience: $0) } ?? ControlClient(path: path)
    let answer: ControlAnswer
    do throws(ControlClientError) {
      answer = try ask(client, form)
    } catch { throw failure(error) }
    try show(answer)
  }

  var form: ControlForm { json ? .json : .text }

  /// Prints the daemon's answer.
  ///
  /// - Throws: `ControlOptions.nothing` as `report` does.
  func show(_ answer: ControlAnswer) throws {
    print(answer.content, terminator: "")
    if answer.isIncomplete { throw ControlOptions.nothing }
  }

  /// Writes the error to stderr and returns the exit code to throw.
  func failure(_ error: ControlClientError) -> ExitCode {
    if case .notRunning(let path, _) = error, isWithoutFile {
      Console.error(
        "httpdnsd: no daemon at \(path); if yours was started with another configuration, give --config FILE, or --socket PATH"
      )
    } else {
      Console.error("httpdnsd: \(error)")
    }
    return .failure
  }

  /// The exit code if nothing was found or a part of the request failed.
  static let nothing = ExitCode(2)

  /// Throws a `ValidationError` unless the text is a domain name.
  static func check(_ name: String) throws { _ = try DomainName(argument: name) }

  /// The path of the socket; nil if the configuration switches it off.
  func find() throws(Mistakes) -> String? {
    if let socket { return socket }
    return try Configuration.control(path: options.config).socket
  }

  /// Whether the configuration file does not exist.
  private var hasNoFile: Bool { access(options.config, F_OK) != 0 && errno == ENOENT }

  /// Whether the path of the socket is unknown: no option sets it, and the default configuration file does not exist.
  private var isWithoutFile: Bool { socket == nil && options.given == nil && hasNoFile }

  /// The message if the configuration that would name the socket is missing; nil if it exists or is not needed.
  var missingFile: String? {
    guard socket == nil, hasNoFile else { return nil }
    return
      "httpdnsd: \(options.config): no such file; give --config FILE as the daemon was started with it, or --socket PATH"
  }

  /// The path of the socket; without a configuration, the default path.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  func path() throws -> String {
    if isWithoutFile, let usual = Configuration.usualControl().socket { return usual }
    if let missingFile { throw Console.failure(missingFile) }
    let path: String?
    do throws(Mistakes) {
      path = try find()
    } catch {
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw Console.failure(
        "httpdnsd: without a valid configuration, name the daemon's control socket with --socket PATH")
    }
    guard let path else { throw switchedOff() }
    return path
  }

  /// Reports that the control socket is switched off, and returns the exit code to throw.
  func switchedOff() -> ExitCode {
    Console.failure("httpdnsd: the control socket is switched off: control.socket is \"\" in \(options.config)")
  }
}
