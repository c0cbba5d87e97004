// ListenPlace.swift -- where the daemon of a configuration file is to be asked, for who may not read its secrets.

extension Configuration {
  /// The `listen.addresses` of a configuration file, whatever else is wrong there or cannot be read here.
  ///
  /// - Throws: What is wrong with the file as a whole, or with the section.
  public static func listenAddresses(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> [Endpoint] {
    let text = try text(path: path)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = Report(file: path, environment: environment)
      let reader = TableReader(try table(text, fileName: path), at: .root, report)
      var listen = Listen()
      reader.section("listen") { listen.read(from: $0) }
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      return listen.addresses
    }
  }
}
