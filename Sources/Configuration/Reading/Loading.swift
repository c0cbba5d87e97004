// Loading.swift -- reads a configuration from a file or a text, or reports all of its mistakes.

import DNSWire
import Files
import Glibc

extension Configuration {
  /// The largest accepted configuration file, in octets.
  public static let maxFileSize = 1 << 20

  /// A configuration that was accepted.
  public struct Loaded: Hashable, Sendable {
    /// The settings, with defaults for what the file leaves out.
    public let configuration: Configuration
    /// Accepted settings that are probably not intended.
    public let warnings: [Warning]
    /// The keys that name a secret file; each of these files was read.
    public let secretFiles: [String]
  }

  /// Returns the value of an environment variable, or nil if it is not set.
  public typealias Environment = (String) -> String?

  /// The value of a variable of this process. Not safe while another thread calls `setenv`.
  public static func processEnvironment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// Reads and checks a configuration file, the environment variables that override it, and the secret files that it
  /// names. Blocks on file I/O.
  ///
  /// - Throws: All mistakes; a file that cannot be read is one.
  public static func load(path: String = defaultPath) throws(Mistakes) -> Loaded {
    try load(path: path, environment: processEnvironment, variables: UnknownVariables.ofProcess())
  }

  /// Reads and checks a configuration file as above, in the given environment.
  ///
  /// - Parameter variables: The names of all variables; unknown ones that begin with `HTTPDNSD_` cause a warning.
  /// - Throws: All mistakes; a file that cannot be read is one.
  public static func load(path: String, environment: Environment, variables: [String] = []) throws(Mistakes) -> Loaded {
    try parse(text: text(path: path), fileName: path, environment: environment, variables: variables)
  }

  /// The text of a configuration file.
  static func text(path: String) throws(Mistakes) -> String {
    let octets: [UInt8]
    do {
      octets = try FileContent.read(path, limit: maxFileSize).octets
    } catch {
      throw Mistakes(
        file: path, location: .file, found: error.found,
        allowed: error.remedy(
          "a TOML file", missing: "create it (an empty one means the defaults) or give --config FILE"),
        wording: .failure)
    }
    guard let text = String(validating: octets, as: UTF8.self) else {
      throw Mistakes(
        file: path, location: .file, found: "is not valid UTF-8", allowed: "a TOML file in UTF-8", wording: .value)
    }
    return text
  }

  /// The root table of a configuration file's text.
  static func table(_ text: String, fileName: String) throws(Mistakes) -> [String: Value] {
    do {
      return try parseTOML(text)
    } catch {
      throw Mistakes(
        file: fileName, location: .position(line: error.line, column: error.column), found: error.found,
        allowed: error.allowed, wording: error.allowed.isEmpty ? .failure : .value)
    }
  }

  /// Reads and checks the text of a configuration file, the environment variables that override it, and the secret files
  /// that it names.
  ///
  /// - Parameters:
  ///   - fileName: The name of the text in mistakes and warnings.
  ///   - variables: The names of all variables; unknown ones that begin with `HTTPDNSD_` cause a warning.
  /// - Throws: All mistakes.
  public static func parse(
    text: String, fileName: String, environment: Environment = processEnvironment, variables: [String] = []
  ) throws(Mistakes) -> Loaded {
    let table = try table(text, fileName: fileName)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = MistakeReport(file: fileName, environment: environment)
      UnknownVariables.warn(of: variables, report)
      var configuration = Configuration()
      configuration.read(from: TableReader(EnvironmentSettings.applied(to: table, report), at: .root, report))
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      return Loaded(configuration: configuration, warnings: report.warnings, secretFiles: report.secretFiles)
    }
  }
}

extension Mistakes {
  fileprivate init(file: String, location: Mistake.Location, found: String, allowed: String, wording: Mistake.Wording) {
    let mistake = Mistake(file: file, location: location, found: found, allowed: allowed, wording: wording)
    self.init(mistakes: [mistake], warnings: [])
  }
}
