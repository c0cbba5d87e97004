// Names.swift -- the `[names]` section: names that are answered here, and the patterns that select names.

import DNSWire

extension Configuration {
  /// Names that are answered here.
  public struct Names: Hashable, Sendable {
    /// The hosts file; nil means none.
    public var hostsFile: String? = "/etc/hosts"
    /// Whether special-use names (RFC 6761 and others) are answered here and never forwarded.
    public var special = true
    /// Whether private addresses are taken out of answers for public names.
    public var rebindProtection = false
    /// Names that may have private addresses nevertheless.
    public var rebindAllow: [NamePattern] = []
  }

  /// Selects names.
  public enum NamePattern: Hashable, Sendable {
    /// `example.com`: the name and everything below it.
    case subtree(DomainName)
    /// `*.example.com`: only what is below the name.
    case below(DomainName)
    /// `=example.com`: exactly the name.
    case exact(DomainName)

    /// A pattern from its text in the configuration file; nil where that is none.
    public init?(text: String) {
      guard text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
      let (make, rest): ((DomainName) -> NamePattern, Substring)
      if text.hasPrefix("*.") {
        (make, rest) = (NamePattern.below, text == "*." ? "." : text.dropFirst(2))
      } else if text.hasPrefix("=") {
        (make, rest) = (NamePattern.exact, text.dropFirst())
      } else {
        (make, rest) = (NamePattern.subtree, text[...])
      }
      // An asterisk elsewhere would be taken literally, which nobody means.
      guard !rest.contains("*"), let name = DomainName(text: rest) else { return nil }
      self = make(name.lowercased)
    }
  }
}

extension Configuration.NamePattern: CustomStringConvertible {
  /// The text in the configuration file, with a final dot.
  public var description: String {
    switch self {
    case .subtree(let name): name.text
    case .below(let name): name.isRoot ? "*." : "*.\(name.text)"
    case .exact(let name): "=\(name.text)"
    }
  }
}

extension Configuration.Names {
  mutating func read(from reader: TableReader) {
    reader.read("hosts_file", &hostsFile, .optional(.absolutePath))
    reader.read("special", &special, .boolean)
    reader.read("rebind_protection", &rebindProtection, .boolean)
    reader.read("rebind_allow", &rebindAllow, .distinctList(of: .namePattern))
  }
}

extension Form where Result == Configuration.NamePattern {
  static var namePattern: Form {
    Form("\"example.com\" (and below), \"*.example.com\" (below) or \"=example.com\", in ASCII (xn--…)") { value in
      value.line.flatMap { Configuration.NamePattern(text: $0) }
    }
  }
}
