// NamePattern.swift -- selects the names of a rule.

/// Selects names.
public enum NamePattern: Hashable, Sendable {
  /// A name and everything below it: `corp.example`.
  case subtree(DomainName)
  /// Everything below a name but not the name: `*.corp.example`.
  case below(DomainName)
  /// Only the name itself: `=corp.example`.
  case exact(DomainName)

  /// A pattern from its text in the configuration file; nil if it is invalid. `*` alone is refused as ambiguous.
  public init?(text: some StringProtocol) {
    guard text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else { return nil }
    let (make, rest): ((DomainName) -> NamePattern, String)
    if text.hasPrefix("*.") {
      (make, rest) = (NamePattern.below, text == "*." ? "." : String(text.dropFirst(2)))
    } else if text.hasPrefix("=") {
      (make, rest) = (NamePattern.exact, String(text.dropFirst()))
    } else {
      (make, rest) = (NamePattern.subtree, String(text))
    }
    // An asterisk elsewhere would be a literal one, which is never intended.
    guard !rest.contains("*"), let name = DomainName(text: rest) else { return nil }
    self = make(name.lowercased)
  }

  /// The name in the pattern.
  public var name: DomainName {
    switch self {
    case .subtree(let name), .below(let name), .exact(let name): name
    }
  }

  /// Whether the pattern selects this name.
  ///
  /// - Complexity: O(octets of the name)
  public func matches(_ candidate: DomainName) -> Bool {
    switch self {
    case .subtree(let name): candidate.isAtOrBelow(name)
    case .below(let name): candidate != name && candidate.isAtOrBelow(name)
    case .exact(let name): candidate == name
    }
  }
}

extension NamePattern: CustomStringConvertible {
  /// The text in the configuration file, with a final dot.
  public var description: String {
    switch self {
    case .subtree(let name): name.text
    case .below(let name): name.isRoot ? "*." : "*.\(name.text)"
    case .exact(let name): "=\(name.text)"
    }
  }
}
