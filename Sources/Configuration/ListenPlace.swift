// ListenPlace.swift -- where the daemon of a configuration answers, for who only asks it and may not read its secrets.

extension Configuration {
  /// The `listen.addresses` of a configuration file, or what the environment says in their place, whatever else is wrong
  /// there or cannot be read here.
  ///
  /// - Throws: What is wrong with the file as a whole, or with the section.
  public static func listenAddresses(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> [Endpoint] {
    let text = try text(path: path)
    let table = try table(text, fileName: path)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = Report(file: path) { $0 == "HTTPDNSD_LISTEN" ? environment($0) : nil }
      let reader = TableReader(EnvironmentSettings.applied(to: table, report), at: .root, report)
      var listen = Listen()
      reader.section("listen") { listen.read(from: $0) }
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      return listen.addresses
    }
  }
}
