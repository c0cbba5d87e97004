// ControlSocketPath.swift -- the control socket of a configuration, for callers that cannot read its secrets.

import Glibc

extension Configuration {
  /// The `[control]` section of a configuration file. Ignores mistakes and unreadable files elsewhere in the configuration:
  /// a client of the control socket needs no access to the daemon's secrets.
  ///
  /// - Throws: Mistakes of the file as a whole and of the section.
  public static func control(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> Control {
    let text = try text(path: path)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = MistakeReport(file: path, environment: environment)
      let reader = TableReader(try table(text, fileName: path), at: .root, report)
      var control = Control()
      reader.section("control") { control.read(from: $0) }
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      control.move(to: environment("RUNTIME_DIRECTORY"))
      return control
    }
  }

  /// The defaults of the `[control]` section, with `$RUNTIME_DIRECTORY` applied.
  public static func usualControl(environment: Environment = processEnvironment) -> Control {
    var control = Control()
    control.move(to: environment("RUNTIME_DIRECTORY"))
    return control
  }
}
