// ListenAddresses.swift -- the listening addresses of a configuration, for callers that cannot read its secrets.

extension Configuration {
  /// The `listen.addresses` of a configuration file, or the environment's override. Ignores mistakes and unreadable files
  /// elsewhere in the configuration.
  ///
  /// - Throws: Mistakes of the file as a whole and of the section.
  public static func listenAddresses(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> [Endpoint] {
    let text = try text(path: path)
    let table = try table(text, fileName: path)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = MistakeReport(file: path) { $0 == "HTTPDNSD_LISTEN" ? environment($0) : nil }
      let reader = TableReader(EnvironmentSettings.applied(to: table, report), at: .root, report)
      var listen = Listen()
      reader.section("listen") { listen.read(from: $0) }
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      return listen.addresses
    }
  }
}
