// ResolverText.swift -- resolv.conf(5) with our line first.

/// Texts in the form of resolv.conf(5).
enum ResolverText {
  /// glibc asks no more servers than this.
  static let mostServers = 3
  /// How long glibc waits for one before it asks the next, in seconds: longer than the daemon waits for a provider before it
  /// gives LocalDNS's answer, or the next server would be asked beside it.
  static let timeout = 3

  /// The same text with our nameserver before all others. Everything else stays, comments too.
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

  /// The nameservers of a text, in its order.
  static func servers(of text: String) -> [String] { servers(text.split(separator: "\n").map(String.init)) }

  private static let comment = "# httpdnsd is asked first; `httpdnsd setup undo` takes this back."

  private static func servers(_ lines: [String]) -> [String] { lines.compactMap(server) }

  private static func server(of line: String) -> String? {
    let words = line.split(whereSeparator: \.isWhitespace)
    return words.count > 1 && words[0] == "nameserver" ? String(words[1]) : nil
  }

  private static func options(_ lines: [String]) -> [Substring] {
    lines.map { $0.split(whereSeparator: \.isWhitespace) }.filter { $0.first == "options" }.flatMap { $0.dropFirst() }
  }
}
