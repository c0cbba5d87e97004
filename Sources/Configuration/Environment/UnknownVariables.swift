// UnknownVariables.swift -- warns about environment variables with our prefix that do not exist, most of them misspelt.

import CProcess

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

  /// Warns about each unknown variable.
  ///
  /// - Parameter names: the names of all variables.
  static func warn(of names: some Sequence<String>, _ report: MistakeReport) {
    for name in names.sorted() where name.hasPrefix(prefix) && !known.contains(name) {
      if isMeantForOthers(name, report.environment(name) ?? "") { continue }
      let hint = nearest(to: name).map { "did you mean \($0)?" } ?? "known are \(known.joined(separator: ", "))"
      report.warn("unknown variable; \(hint)", ofVariable: name)
    }
  }

  /// Kubernetes sets variables for the services of the namespace, Docker for links, and such a service may be named
  /// httpdnsd: `HTTPDNSD_SERVICE_HOST`, `HTTPDNSD_NODE_PORT_53_UDP_ADDR`. `HTTPDNSD_TEST_` belongs to the tests.
  private static func isMeantForOthers(_ name: String, _ value: String) -> Bool {
    if name.hasPrefix("\(prefix)TEST_") || name.hasSuffix("_SERVICE_HOST") || name.contains("_SERVICE_PORT") {
      return true
    }
    if name.hasSuffix("_PORT") { return value.contains("://") }
    guard let port = name.firstRange(of: "_PORT_") else { return false }
    return name[port.upperBound...].utf8.first.map { isDigit($0) } ?? false
  }

  /// The known variable that differs by a typing mistake, or only at the end.
  private static func nearest(to name: String) -> String? {
    closest(to: name, among: known) ?? known.first { name.hasPrefix($0) || $0.hasPrefix(name) }
  }
}
