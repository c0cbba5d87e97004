// CheckCommand.swift -- `httpdnsd check`: reports all mistakes in a configuration file at once.

import ArgumentParser
import Configuration
import Control
import Forwarder
import Glibc
import Upstreams

/// Checks a configuration file and does nothing else.
struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check a configuration file and print every mistake, one per line; exit code 0 or 1.",
    discussion: """
      If there is no mistake, it shows what depends on the current network, LocalDNS's resolvers and search domains, and \
      the lists of rules: names, age, and which lines are left out and why. It fetches nothing.

      Run as root on the configuration of httpdnsd.service, it reads files as the service's user: a secret that the \
      service may not read is a mistake. It warns if rules have sets and the service lacks the right to change them.

      Example: httpdnsd check
      Example: httpdnsd check ./httpdnsd.toml
      """
  )

  @OptionGroup var options: ConfigurationOption

  @Argument(help: "The configuration file; the same as --config.", completion: .file()) var file: String?

  private var path: String { Configuration.path(given: file ?? options.given) }

  func validate() throws {
    guard file == nil || options.given == nil else {
      throw ValidationError("the configuration file is given twice, with --config and as an argument")
    }
  }

  func run() throws {
    let path = path
    var service = ServiceReader(of: path)
    if service?.begin() == false { service = nil }
    let loaded: LoadedConfiguration
    let files: EncryptedFiles
    do {
      defer { service?.end() }
      loaded = try LoadedConfiguration(path: path)
      files = try encryptedFiles(loaded, path)
    }
    var warnings = loaded.warnings.map { "\($0)" }
    warnings += files.warnings(at: Int64(time(nil))).map { "\(path): \($0)" }
    if let problem = ControlSocket.problem(loaded.configuration.control) { warnings.append("\(path): \(problem)") }
    warnings += TableFile.problems(loaded.configuration).map { "\(path): \($0)" }
    if let problem = HostsReading.problem(loaded.configuration) {
      warnings.append("\(path): names.hosts_file: \(problem)")
    }
    if loaded.configuration.rules.contains(where: { !$0.sets.isEmpty }), service?.mayChangeSets == false {
      let remedy = "install its drop-in httpdnsd-sets.conf"
      warnings.append("\(path): sets: httpdnsd.service may not change firewall sets; \(remedy)")
    }
    for warning in warnings { Console.error("warning: \(warning)") }
    print("\(path): no mistakes\(warnings.isEmpty ? "" : ", \(counted(warnings.count, "warning"))")")
    if let service { for key in loaded.secretFiles { print("\(key): the service's user \(service.name) can read it") } }
    for line in ListView.lines(loaded.configuration) { print(line) }
    for line in NetworkView(loaded.configuration).lines { print(line) }
  }

  /// Reads what `[encrypted]` names.
  ///
  /// - Throws: `ExitCode.failure`, after one line for each mistake has been written to stderr.
  private func encryptedFiles(_ loaded: LoadedConfiguration, _ path: String) throws -> EncryptedFiles {
    do throws(EncryptedFiles.Faults) {
      return try EncryptedFiles(loaded.configuration.encrypted)
    } catch {
      for warning in loaded.warnings { Console.error("warning: \(warning)") }
      for line in error.lines { Console.error("\(path): \(line)") }
      throw ExitCode.failure
    }
  }
}
