// ResolvedSettings.swift -- reads the relevant settings of resolved.conf(5) and its drop-ins.

/// The settings of systemd-resolved, each with the file that sets it.
struct ResolvedSettings {
  private var values: [String: [(value: String, file: String)]] = [:]

  /// Reads the main file and the drop-ins. Of drop-ins with the same name, the one in /etc wins.
  ///
  /// - Parameter hasOurs: whether to read our own drop-in too.
  init(_ root: Root, hasOurs: Bool = false) {
    let main = "/etc/systemd/resolved.conf"
    if let text = root.text(of: main) { read(text, main) }
    let folders = ["/etc", "/run", "/usr/local/lib", "/usr/lib"].map { "\($0)/systemd/resolved.conf.d" }
    for file in root.dropIns(in: folders) where hasOurs || file != SetupPaths.resolvedDropIn {
      if let text = root.text(of: file) { read(text, file) }
    }
  }

  /// The values that disable a setting, in lower case.
  static let no = ["no", "n", "false", "f", "off", "0"]

  /// Returns whether the last value of a setting is one of these, ignoring case.
  func has(_ name: String, oneOf values: [String]) -> Bool {
    self.values[name]?.last.map { values.contains($0.value.lowercased()) } ?? false
  }

  /// Returns the file that sets the last value, unless that value is in `values`.
  func place(of name: String, notIn values: [String]) -> String? {
    guard let found = self.values[name]?.last, !values.contains(found.value.lowercased()) else { return nil }
    return found.file
  }

  /// Returns the first file that sets this value of a cumulative setting.
  func place(of name: String, with value: String) -> String? { values[name]?.first { $0.value == value }?.file }

  private mutating func read(_ text: String, _ file: String) {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") && !line.hasPrefix(";") {
      guard let equals = line.firstIndex(of: "=") else { continue }
      let words = line[line.index(after: equals)...].split(whereSeparator: \.isWhitespace)
      let name = line[..<equals].split(whereSeparator: \.isWhitespace).joined()
      // An empty value resets the setting.
      values[name] = words.isEmpty ? nil : (values[name] ?? []) + [(words.joined(separator: " "), file)]
    }
  }
}
