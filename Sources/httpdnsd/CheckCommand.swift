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
      """
  )

  @OptionGroup var options: ConfigurationOption

  func run() throws {
    var service = ServiceReader(of: options.config)
    if service?.begin() == false { service = nil }
    let loaded: LoadedConfiguration
    do {
      defer { service?.end() }
      loaded = try LoadedConfiguration(path: options.config)
    }
    for warning in loaded.warnings { Console.error("warning: \(warning)") }
    if let problem = ControlSocket.problem(loaded.configuration.control) {
      Console.error("warning: \(options.config): \(problem)")
    }
    print("\(options.config): no mistakes")
    if let service { for key in loaded.secretFiles { print("\(key): the service, user \(service.name), can read it") } }
    for line in NetworkView(loaded.configuration).lines { print(line) }
  }
}
