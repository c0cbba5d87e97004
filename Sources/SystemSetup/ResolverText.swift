// ResolverText.swift -- adds our nameserver to a resolv.conf(5).

/// Reads and edits the text of resolv.conf(5).
enum ResolverText {
  /// The most servers that glibc asks.
  static let mostServers = 3
  /// How long glibc waits for a server before it asks the next one, in seconds. Longer than the daemon waits for a
  /// provider before it returns LocalDNS's answer; otherwise glibc would ask the next server meanwhile.
  static let timeout = 3

  /// Returns the text with our nameserver before all others. Everything else stays, including comments.
  static func first(_ nameserver: Nameserver, in text: String) -> String {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    if lines.last == "" { lines.removeLast() }
    lines.removeAll { server(of: $0) == nameserver.host }
    let place = lines.firstIndex { server(of: $0) != nil } ?? lines.count
    lines.insert("nameserver \(nameserver.host)", at: place)
    lines.insert(comment, at: 0)
    let missing = ["timeout:\(timeout)", "attempts:2"].filter { option in
      !options(lines).contains { $0.hasPrefix(option.prefix { $0 != ":" } + ":") }
    }
    if servers(lines).count > 1, !missing.isEmpty { lines.append("options \(missing.joined(separator: " "))") }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns a text that `first` returned without our nameserver; nil if it is not one of these.
  static func withoutOurs(_ text: String) -> String? {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard let first = lines.first, isOurs(first[...]) else { return nil }
    lines.removeFirst()
    if let ours = lines.firstIndex(where: { server(of: $0) != nil }) { lines.remove(at: ours) }
    return lines.joined(separator: "\n")
  }

  /// Returns the nameservers of a text in order.
  static func servers(of text: String) -> [String] { servers(text.split(separator: "\n").map(String.init)) }

  /// Whether a first line is that of a text that this or an earlier version made.
  static func isOurs(_ line: Substring) -> Bool { line.hasPrefix("#") && line.contains(SetupPaths.mark) }

  /// The first line of a text that this made.
  static let comment = "# httpdnsd is asked first; `httpdnsd setup undo` reverts this."

  private static func servers(_ lines: [String]) -> [String] { lines.compactMap(server) }

  private static func server(of line: String) -> String? {
    let words = line.split(whereSeparator: \.isWhitespace)
    return words.count > 1 && words[0] == "nameserver" ? String(words[1]) : nil
  }

  private static func options(_ lines: [String]) -> [Substring] {
    lines.map { $0.split(whereSeparator: \.isWhitespace) }.filter { $0.first == "options" }.flatMap { $0.dropFirst() }
  }
}
