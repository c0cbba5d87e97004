// ControlPlace.swift -- where the daemon of a configuration file can be reached, for who may not read its secrets.

import Glibc

extension Configuration {
  /// The `[control]` section of a configuration file, whatever else is wrong there or cannot be read here: a running daemon
  /// has read it, and its secrets are no business of who only speaks with it.
  ///
  /// - Throws: What is wrong with the file as a whole, or with the section.
  public static func control(
    path: String = defaultPath, environment: Environment = processEnvironment
  ) throws(Mistakes) -> Control {
    let text = try text(path: path)
    return try withoutActuallyEscaping(environment) { environment throws(Mistakes) in
      let report = Report(file: path, environment: environment)
      let reader = TableReader(try table(text, fileName: path), at: .root, report)
      var control = Control()
      reader.section("control") { control.read(from: $0) }
      guard report.mistakes.isEmpty else { throw Mistakes(mistakes: report.mistakes, warnings: report.warnings) }
      control.move(to: environment("RUNTIME_DIRECTORY"))
      return control
    }
  }

  /// The `[control]` section of a file that has none.
  public static func usualControl(environment: Environment = processEnvironment) -> Control {
    var control = Control()
    control.move(to: environment("RUNTIME_DIRECTORY"))
    return control
  }
}
