// CheckCommand.swift -- `httpdnsd check`: every mistake of a configuration file in one go.

import ArgumentParser
import Configuration
import Control
import Forwarder

/// Checks a configuration file and does nothing else.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check a configuration file: prints every mistake, one a line; exit code 0 or 1.",
    discussion: """
      Without a mistake it shows what the present network changes: LocalDNS's resolvers, and search domains.

      As root, and for the configuration of httpdnsd.service, files are read as the service's user: a secret that the \
      service may not read is a mistake.

      Example: httpdnsd check
      Example: httpdnsd check ./httpdnsd.toml
      """
  )

  @OptionGroup var options: ConfigurationOption

  @Argument(help: "The configuration file, as --config gives it.", completion: .file())
  var file: String?

  /// The path of the file.
  private var path: String { Configuration.path(given: file ?? options.given) }

  func validate() throws {
    guard file == nil || options.given == nil else {
      throw ValidationError("the configuration file is given twice, by --config and without")
    }
  }

  func run() throws {
    let path = path
    var service = ServiceReader(of: path)
    if service?.begin() == false { service = nil }
    let loaded: LoadedConfiguration
    do {
      defer { service?.end() }
      loaded = try LoadedConfiguration(path: path)
    }
    for warning in loaded.warnings { Console.error("warning: \(warning)") }
    if let problem = ControlSocket.problem(loaded.configuration.control) {
      Console.error("warning: \(path): \(problem)")
    }
    print("\(path): no mistakes")
    if let service { for key in loaded.secretFiles { print("\(key): the service, user \(service.name), can read it") } }
    for line in NetworkView(loaded.configuration).lines { print(line) }
  }
}
