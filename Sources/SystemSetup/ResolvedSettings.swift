// ResolvedSettings.swift -- what resolved.conf(5) and its drop-ins say that matters here.

/// The settings of systemd-resolved, each with the file that has it.
struct ResolvedSettings {
  private var values: [String: [(value: String, file: String)]] = [:]

  /// Reads the main file and the drop-ins; of drop-ins with the same name the one in /etc counts.
  init(_ root: Root) {
    let main = "/etc/systemd/resolved.conf"
    if let text = root.text(of: main) { read(text, main) }
    var dropIns: [String: String] = [:]
    for folder in ["/usr/lib", "/usr/local/lib", "/run", "/etc"].map({ "\($0)/systemd/resolved.conf.d" }) {
      for name in root.names(in: folder) where name.hasSuffix(".conf") { dropIns[name] = "\(folder)/\(name)" }
    }
    for (_, file) in dropIns.sorted(by: { $0.key < $1.key }) where file != Place.resolvedDropIn {
      if let text = root.text(of: file) { read(text, file) }
    }
  }

  /// What switches a setting off, in lower case.
  static let no = ["no", "n", "false", "f", "off", "0"]

  /// Whether the last value of a setting is one of these.
  func has(_ name: String, oneOf values: [String]) -> Bool {
    self.values[name]?.last.map { values.contains($0.value.lowercased()) } ?? false
  }

  /// The file that gives a setting its last value, unless it is one of those named.
  func place(of name: String, notIn values: [String]) -> String? {
    guard let found = self.values[name]?.last, !values.contains(found.value.lowercased()) else { return nil }
    return found.file
  }

  /// The file that has a setting whose values add up, with this one among them.
  func place(of name: String, with value: String) -> String? { values[name]?.first { $0.value == value }?.file }

  private mutating func read(_ text: String, _ file: String) {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") && !line.hasPrefix(";") {
      guard let equals = line.firstIndex(of: "=") else { continue }
      let words = line[line.index(after: equals)...].split(whereSeparator: \.isWhitespace)
      let name = line[..<equals].split(whereSeparator: \.isWhitespace).joined()
      // Nothing behind the sign takes back what was said before.
      values[name] = words.isEmpty ? nil : (values[name] ?? []) + [(words.joined(separator: " "), file)]
    }
  }
}
