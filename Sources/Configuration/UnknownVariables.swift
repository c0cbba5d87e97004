// UnknownVariables.swift -- variables of the environment that look like ours and are none: most are misspelt.

import CProcess

/// Finds the variables that nobody reads.
enum UnknownVariables {
  private static let prefix = "HTTPDNSD_"
  private static let known = ["HTTPDNSD_CONFIG"] + EnvironmentSettings.variables

  /// The names of this process's variables.
  static func ofProcess() -> [String] {
    var names: [String] = []
    while let variable = process_variable(names.count) {
      names.append(String(String(cString: variable).prefix { $0 != "=" }))
    }
    return names
  }

  /// Warns of each.
  ///
  /// - Parameter names: all variables that there are.
  static func warn(of names: some Sequence<String>, _ report: Report) {
    for name in names.sorted() where name.hasPrefix(prefix) && !known.contains(name) {
      if isMeantForOthers(name, report.environment(name) ?? "") { continue }
      let hint = nearest(to: name).map { "did you mean \($0)?" } ?? "known are \(known.joined(separator: ", "))"
      report.warn("nobody reads this variable (\(hint))", ofVariable: name)
    }
  }

  /// Kubernetes gives each container variables for the services of its namespace, Docker for links, and services may be
  /// called as we are: `HTTPDNSD_SERVICE_HOST`, `HTTPDNSD_NODE_PORT_53_UDP_ADDR`. The tests have some of their own.
  private static func isMeantForOthers(_ name: String, _ value: String) -> Bool {
    if name.hasPrefix("\(prefix)TEST_") || name.hasSuffix("_SERVICE_HOST") || name.contains("_SERVICE_PORT") {
      return true
    }
    if name.hasSuffix("_PORT") { return value.contains("://") }
    guard let port = name.firstRange(of: "_PORT_") else { return false }
    return name[port.upperBound...].utf8.first.map { isDigit($0) } ?? false
  }

  /// The known one that differs by a slip, or by words at the end.
  private static func nearest(to name: String) -> String? {
    closest(to: name, among: known) ?? known.first { name.hasPrefix($0) || $0.hasPrefix(name) }
  }
}
