// List.swift -- one `[[list]]`, the names of which rules use, and what stands for a list in a rule.

import Ciphers
import DNSWire

extension Configuration {
  /// A list of names that needs more than its path or URL.
  public struct List: Hashable, Sendable {
    /// Name in `lists` of rules, and in messages.
    public var name = ""
    /// Path of the list. Either this or `url`.
    public var file: String?
    /// URL of the list, which the daemon fetches.
    public var url: ListURL?
    /// Time between two fetches, ±10 %. Only with `url`.
    public var interval: Duration = .seconds(86_400)
    /// PEM file with certificate authorities; empty means the system's. Only with `url`.
    public var caFile: String?
    /// HTTP or SOCKS proxy, `http://HOST:PORT` or `socks5h://HOST:PORT`. Only with `url`.
    public var proxy: CredentialURL?
    /// Largest text, after decompression.
    public var maxSize = 64 << 20

    init() {}
  }

  /// A list as a rule names it.
  public enum ListItem: Hashable, Sendable {
    case named(String)
    case file(String)
    case url(ListURL)
  }

  /// Largest number of lists in all rules.
  static let mostLists = 64

  /// The lists of each rule; what several rules name in the same way is one list.
  ///
  /// - Returns: all lists that rules use, each with a name of its own, and for each rule the indices of its own.
  public func usedLists() -> (lists: [List], ofRules: [[Int]]) {
    var numbers: [ListItem: Int] = [:]
    var used: [List] = []
    let ofRules = rules.map { rule in
      rule.lists.map { item in
        if let number = numbers[item] { return number }
        numbers[item] = used.count
        used.append(list(item))
        return used.count - 1
      }
    }
    // URLs that differ in their user or query are shown alike.
    var counts: [String: Int] = [:]
    for index in used.indices {
      let name = used[index].name
      counts[name, default: 0] += 1
      if let count = counts[name], count > 1 { used[index].name = "\(name) (\(count))" }
    }
    return (used, ofRules)
  }

  private func list(_ item: ListItem) -> List {
    var list = List()
    switch item {
    case .named(let name): return lists.first { $0.name == name } ?? list
    case .file(let path): (list.name, list.file) = (path, path)
    case .url(let url): (list.name, list.url) = (url.description, url)
    }
    return list
  }
}

/// The URL of a list. Its description has neither user and password nor the query, which may be secret.
public struct ListURL: Hashable, Sendable {
  let scheme: Scheme
  let host: Host
  /// The whole text.
  public let text: Secret
  private let shown: String

  /// A URL from its text; nil if it has a fragment or a character that must be escaped.
  public init?(text: String) {
    let (bare, query) = text.firstIndex(of: "?").map { (text[..<$0], text[$0...]) } ?? (text[...], "")
    guard query.utf8.allSatisfy({ 0x21...0x7E ~= $0 && !"\"<>\\^`{|}#".utf8.contains($0) }) else { return nil }
    var address = String(bare)
    if let slashes = address.firstRange(of: "://"),
      let at = address[slashes.upperBound...].prefix(while: { $0 != "/" }).lastIndex(of: "@")
    {
      address.removeSubrange(slashes.upperBound...at)
    }
    guard let url = ProviderURL(text: address), !address.hasSuffix("}") else { return nil }
    (scheme, host, shown) = (url.scheme, url.host, url.description)
    self.text = Secret(text)
  }
}

extension ListURL: CustomStringConvertible {
  public var description: String { shown }
}

extension Configuration.List {
  static func readAll(from root: TableReader) -> [Configuration.List] {
    var lists: [Configuration.List] = []
    let name: ([String: Value]) -> String? = { $0["name"]?.line.flatMap { isIdentifier($0) ? $0 : nil } }
    root.tables("list", name: name) { reader in
      var list = Configuration.List()
      list.read(from: reader)
      if reader.isSound("name"), lists.contains(where: { $0.name == list.name }) {
        reader.refuse("name", is: "is the name of an earlier list", allowed: "another name")
      }
      lists.append(list)
    }
    return lists
  }

  private mutating func read(from reader: TableReader) {
    reader.require("name", allowed: Form<String>.identifier.allowed)
    reader.read("name", &name, .identifier)
    reader.read("file", &file, .optional(.absolutePath))
    reader.read("url", &url, .optional(.listURL))
    reader.read("interval", &interval, .duration(.seconds(600) ... .seconds(30 * 86_400)))
    reader.read("ca_file", &caFile, .optional(.absolutePath))
    reader.read("proxy", &proxy, .optional(.credentialURL(schemes: ["http", "socks5h"])))
    reader.read("max_size", &maxSize, .size(1 << 10...256 << 20))
    guard reader.isSound("file"), reader.isSound("url") else { return }
    if file != nil, url != nil { reader.refuse("file", "not possible with url", remedy: "remove one of them") }
    if file == nil, url == nil { reader.refuse("url", is: "is not enough", allowed: "file or url") }
    if url == nil {
      for key in ["interval", "ca_file", "proxy"] where reader.isGiven(key) && reader.value(key) != .string("") {
        reader.refuse(key, "only valid with url", remedy: "remove the key")
      }
    }
    if let caFile { reader.requireReadable("ca_file", caFile, mark: ("CERTIFICATE-----", "PEM certificates")) }
    if let proxy, proxy.host.isName {
      reader.refuse(
        "proxy", is: "has a name as its host", allowed: "an address, because names of proxies are not resolved")
    }
    if let url { reader.warnOfPlaintext("url", url, proxy) }
    if let file { reader.warnOfUnreadable("file", file) }
  }
}

extension TableReader {
  /// Warns of a list that everyone on the path can change.
  fileprivate func warnOfPlaintext(_ key: String, _ url: ListURL, _ proxy: CredentialURL? = nil) {
    guard url.scheme == .http, proxy != nil || !url.host.isLoopback else { return }
    warn(key, "\(url): everyone on the path chooses the route of your names; use https")
  }

  /// Warns of a list that cannot be read now; it may come later.
  fileprivate func warnOfUnreadable(_ key: String, _ path: String) {
    if let problem = FileContent.problem(path) { warn(key, "\(shownText(path)): \(problem)") }
  }

  /// Checks what a rule's `lists` names without a `[[list]]`, and refuses names of none.
  func checkLists(_ items: [Configuration.ListItem], among lists: [Configuration.List]) {
    for item in items {
      switch item {
      case .url(let url): warnOfPlaintext("lists", url)
      case .file(let path): warnOfUnreadable("lists", path)
      case .named(let name) where !lists.contains { $0.name == name }:
        refuse(
          "lists", is: "has \"\(shownText(name))\", which is no [[list]]",
          allowed: "absolute paths, http(s) URLs or names of a [[list]]")
      case .named: break
      }
    }
  }

  /// Warns of each `[[list]]` that no rule names.
  func warnOfUnused(_ lists: [Configuration.List], _ rules: [Configuration.Rule]) {
    for list in lists where !rules.contains(where: { $0.lists.contains(.named(list.name)) }) {
      report.warn("no rule uses it", at: place.key("list").named(list.name))
    }
  }
}

extension Form where Result == ListURL {
  fileprivate static var listURL: Form {
    Form("a URL, e.g. \"https://lists.example/names.txt\"") { value in value.line.flatMap { ListURL(text: $0) } }
  }
}

extension Form where Result == Configuration.ListItem {
  /// An element of a rule's `lists`.
  static var listItem: Form {
    Form("an absolute path, an http(s) URL or the name of a [[list]]") { value in
      guard let line = value.line else { return nil }
      if line.hasPrefix("/") { return .file(line) }
      if line.contains("://") { return ListURL(text: line).map { .url($0) } }
      return isIdentifier(line) ? .named(line) : nil
    }
  }
}
