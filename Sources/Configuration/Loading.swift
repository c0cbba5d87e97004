// Loading.swift -- from a file or a text to a configuration, or to all of its mistakes.

import DNSWire
import Glibc

extension Configuration {
  /// The largest file that is read, in octets.
  public static let maxFileSize = 1 << 20

  /// A configuration that was accepted.
  public struct Loaded: Hashable, Sendable {
    /// What the file says.
    public let configuration: Configuration
    /// What its author should know.
    public let warnings: [Warning]
    /// The keys by which it names files with secrets; all of them could be read.
    public let secretFiles: [String]
  }

  /// Gives the value of an environment variable; nil where it is not set.
  public typealias Environment = (String) -> String?

  /// The environment of this process.
  public static func processEnvironment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// Reads and checks a configuration file with what the environment says in its place, and the secret files that it names.
  ///
  /// - Throws: All mistakes of the file, an unreadable file among them.
  public static func load(path: String = defaultPath) throws(Mistakes) -> Loaded {
    try load(path: path, environment: processEnvironment, variables: UnknownVariables.ofProcess())
  }

  /// Reads and checks a configuration file in another environment than this process's.
  ///
  /// - Parameter variables: The names of all variables there; those that are nobody's are warned of.
  /// - Throws: All mistakes of the file, an unreadable file among them.
  public static func load(
    path: String, environment: Environment, variables: [String] = []
  ) throws(Mistakes) -> Loaded {
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
        wording: error.wording)
    }
    guard let text = String(validating: octets, as: UTF8.self) else {
      throw Mistakes(file: path, location: .file, found: "octets that are not UTF-8", allowed: "TOML, which is UTF-8")
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
        allowed: error.allowed)
    }
  }

  /// Reads and checks the text of a configuration file with what the environment says in its place, and the secret files
  /// that it names.
  ///
  /// - Parameters:
  ///   - fileName: What mistakes and warnings call the text.
  ///   - variables: The names of all variables in the environment; those that are nobody's are warned of.
  /// - Throws: All mistakes of the text.
  public static func parse(
    text: String, fileName: String, environment: Environment = processEnvironment, variables: [String] = []
  ) throws(Mistakes) -> Loaded {
    let table = try table(text, fileName: fileName)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = Report(file: fileName, environment: environment)
      UnknownVariables.warn(of: variables, report)
      var configuration = Configuration()
      configuration.read(from: TableReader(EnvironmentSettings.applied(to: table, report), at: .root, report))
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      return Loaded(
        configuration: configuration, warnings: report.warnings, secretFiles: report.secretFiles)
    }
  }
}

extension Mistakes {
  fileprivate init(
    file: String, location: Mistake.Location, found: String, allowed: String, wording: Mistake.Wording = .value
  ) {
    let mistake = Mistake(file: file, location: location, found: found, allowed: allowed, wording: wording)
    self.init(mistakes: [mistake], warnings: [])
  }
}
