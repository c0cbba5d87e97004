// Excerpts.swift -- parts of a configuration file, for callers that cannot read its secrets. Mistakes elsewhere in the file
// are ignored.

extension Configuration {
  /// The `[control]` section of a configuration file, with `$RUNTIME_DIRECTORY` applied.
  ///
  /// - Throws: Mistakes of the file as a whole and of the section.
  public static func control(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> Control {
    var control = Control()
    try read("control", of: path, environment) { control.read(from: $0) }
    control.move(to: environment("RUNTIME_DIRECTORY"))
    return control
  }

  /// The defaults of the `[control]` section, with `$RUNTIME_DIRECTORY` applied.
  public static func usualControl(environment: Environment = processEnvironment) -> Control {
    var control = Control()
    control.move(to: environment("RUNTIME_DIRECTORY"))
    return control
  }

  /// The `listen.addresses` of a configuration file, or the environment's override.
  ///
  /// - Throws: Mistakes of the file as a whole and of the section.
  public static func listenAddresses(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> [Endpoint] {
    var listen = Listen()
    try read("listen", of: path, environment) { listen.read(from: $0) }
    return listen.addresses
  }

  private static func read(
    _ section: String, of path: String, _ environment: Environment, _ body: (TableReader) -> Void
  ) throws(Mistakes) {
    let table = try table(text(path: path), fileName: path)
    try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = MistakeReport(file: path) { $0 == "HTTPDNSD_LISTEN" ? environment($0) : nil }
      TableReader(EnvironmentSettings.applied(to: table, report), at: .root, report).section(section, body)
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
    }
  }

  /// The names of the providers of a configuration file, in their order, with what the environment says in their place.
  /// Empty if the file cannot be read or is no TOML.
  public static func providerNames(path: String, environment: Environment = processEnvironment) -> [String] {
    guard let text = try? text(path: path), let file = try? table(text, fileName: path) else { return [] }
    let root = withoutActuallyEscaping(environment) { environment in
      EnvironmentSettings.applied(to: file, MistakeReport(file: path, environment: environment))
    }
    let usual = Provider().name
    guard let value = root["provider"] else { return [usual] }
    guard case .array(let tables) = value else { return [] }
    return tables.compactMap { table in
      guard case .table(let keys) = table else { return nil }
      let name = (keys["name"] ?? keys["kind"])?.line ?? usual
      return isIdentifier(name) ? name : nil
    }
  }
}
