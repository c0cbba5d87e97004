// ListLine.swift -- what a line of a list selects, which its form alone decides.
//
// The forms are those of the published lists (docs/lists.md has the table): AdGuard's filters, dnsmasq's configuration,
// hosts files, v2fly's texts, Clash's rules, and bare names. Patterns are left out on purpose: every query would have to
// try each of them.

import DNSWire

/// Reads lines, one after the other.
struct ListLine: ~Copyable {
  private var buffer = NameBuffer()

  /// Reads one line without its end.
  ///
  /// - Parameter take: gets each name that the line selects, and says why it is left out.
  /// - Returns: why the line, or a part of it, is left out; nil if all of it was read, or if it says nothing.
  mutating func read(_ line: LineText, _ take: (ListedName) -> LeftOutReason?) -> LeftOutReason? {
    var text = line.trimmed
    if text.first == UInt8(ascii: "!") || text.first == UInt8(ascii: "[") { return nil }
    text = text.withoutComment
    if text.first == UInt8(ascii: "-"), text.count == 1 || isBlank(text[1]) { text = text.dropFirst().trimmed }
    text = text.withoutQuotes
    guard !text.isEmpty, !text.equals("payload:") else { return nil }
    switch text.first {
    case UInt8(ascii: "|"): return filter(text, .subtree, take)
    case UInt8(ascii: "@") where text.hasPrefix("@@"): return filter(text.dropFirst(2), .exception, take)
    case UInt8(ascii: "/"): return regularExpression(text)
    case UInt8(ascii: "="): return name(text.dropFirst(), .alone, take)
    case UInt8(ascii: "+"), UInt8(ascii: "*"), UInt8(ascii: "."): return name(text, .subtree, take)
    default: return words(text, take)
    }
  }

  /// A line that does not begin with a special character.
  private mutating func words(_ text: LineText, _ take: (ListedName) -> LeftOutReason?) -> LeftOutReason? {
    // No blank, and no field behind the name.
    guard let index = text.firstMark else { return give(text, .subtree, take) }
    let (word, rest) = (text.prefix(index), text.dropFirst(index + 1))
    switch text[index] {
    case UInt8(ascii: "=")
    where rest.first == UInt8(ascii: "/") && word.equals(anyOf: ["server", "address", "local", "ipset", "nftset"]):
      return dnsmasq(rest.dropFirst(), take)
    case UInt8(ascii: ":"):
      if word.equals("domain") { return name(rest, .subtree, take) }
      if word.equals("full") { return name(rest, .alone, take) }
      if word.equals("keyword") { return .keyword }
      if word.equals("regexp") { return .regularExpression }
      if word.equals("include") || word.equals("geosite") { return .include }
      return hosts(text, take)
    case UInt8(ascii: ","): return clash(word, rest, of: text, take)
    default: return word.isIPv4 ? hosts(text, take) : name(text, .subtree, take)
    }
  }

  /// A name, behind `+.`, `*.` or `.`; behind it may stand fields of v2fly's texts that begin with `@`, `:@` or `&`.
  private mutating func name(_ text: LineText, _ form: ListForm, _ take: (ListedName) -> LeftOutReason?)
    -> LeftOutReason?
  {
    var name = text.trimmed
    if let end = name.firstBlank {
      var fields = name.dropFirst(end).trimmed
      while !fields.isEmpty {
        guard fields.first == UInt8(ascii: "@") || fields.first == UInt8(ascii: "&") else {
          return text.isCosmetic ? .cosmetic : .noName
        }
        fields = fields.firstBlank.map { fields.dropFirst($0).trimmed } ?? fields.dropFirst(fields.count)
      }
      name = name.prefix(end)
    }
    if let end = name.index(of: ":"), name.dropFirst(end + 1).first == UInt8(ascii: "@") { name = name.prefix(end) }
    return give(form == .alone ? name : name.withoutSubtreeMark, form, take)
  }

  /// The only place that hands a name over.
  private mutating func give(_ text: LineText, _ form: ListForm, _ take: (ListedName) -> LeftOutReason?)
    -> LeftOutReason?
  {
    buffer.read(text) ?? take(buffer.name(form))
  }

  /// AdGuard's `||x^`, `||x^|` and `||x|`, behind `@@` too, with no modifier but `$important`.
  private mutating func filter(_ text: LineText, _ form: ListForm, _ take: (ListedName) -> LeftOutReason?)
    -> LeftOutReason?
  {
    guard text.hasPrefix("||") else { return text.first == UInt8(ascii: "/") ? regularExpression(text) : .noName }
    let (pattern, modifiers) = text.dropFirst(2).split(at: "$")
    if let modifiers, !modifiers.equals("important") { return .modifier }
    var name = pattern
    for mark in [UInt8(ascii: "|"), UInt8(ascii: "^")] where name.last == mark { name = name.dropLast() }
    // `||x.` means all names with a label `x`.
    return name.last == UInt8(ascii: ".") ? .noName : give(name, form, take)
  }

  /// A line that begins with `/`: `/pattern/`, with or without modifiers.
  private func regularExpression(_ text: LineText) -> LeftOutReason {
    guard text.dropFirst().first != UInt8(ascii: "/") else { return .noName }
    // A "$" may be part of the pattern too.
    for index in text.indices where text[index] == UInt8(ascii: "/") && index > 0 {
      if index + 1 == text.count || text[index + 1] == UInt8(ascii: "$") { return .regularExpression }
    }
    return .noName
  }

  /// `x/y/value` of `server=/x/y/value`: all but the last part are names.
  private mutating func dnsmasq(_ text: LineText, _ take: (ListedName) -> LeftOutReason?) -> LeftOutReason? {
    var (part, rest) = text.split(at: "/")
    var reason: LeftOutReason?
    guard rest != nil else { return .noName }
    while let next = rest {
      if let found = give(part.withoutSubtreeMark, .subtree, take) { reason = reason ?? found }
      (part, rest) = next.split(at: "/")
    }
    return reason
  }

  /// `0.0.0.0 x y`: names alone, if the address is one by which lists block.
  private mutating func hosts(_ text: LineText, _ take: (ListedName) -> LeftOutReason?) -> LeftOutReason? {
    guard let end = text.firstBlank else { return name(text, .subtree, take) }
    let address = text.prefix(end)
    guard address.isIPv4 || address.isIPv6 else { return name(text, .subtree, take) }
    guard address.equals(anyOf: ["0.0.0.0", "127.0.0.1", "::", "::1"]) else { return .otherAddress }
    var rest = text.dropFirst(end).trimmed
    var reason: LeftOutReason?
    while !rest.isEmpty {
      let end = rest.firstBlank ?? rest.count
      if let found = give(rest.prefix(end), .alone, take) { reason = reason ?? found }
      rest = rest.dropFirst(end).trimmed
    }
    return reason
  }

  /// `DOMAIN-SUFFIX,x,policy`.
  private mutating func clash(
    _ word: LineText, _ rest: LineText, of text: LineText, _ take: (ListedName) -> LeftOutReason?
  ) -> LeftOutReason? {
    let value = rest.split(at: ",").0.trimmed
    if word.equals("domain-suffix") { return give(value.withoutSubtreeMark, .subtree, take) }
    if word.equals("domain") { return give(value, .alone, take) }
    if word.equals("domain-keyword") { return .keyword }
    if word.equals(anyOf: ["domain-regex", "url-regex"]) { return .regularExpression }
    if word.equals("domain-wildcard") { return .wildcard }
    if word.equals(anyOf: ["ip-cidr", "ip-cidr6", "ip-asn", "geoip", "src-ip-cidr"]) { return .network }
    if word.equals(anyOf: ["rule-set", "domain-set", "geosite", "sub-rule", "and", "or", "not"]) { return .include }
    // No name, but it may be a rule of a filter.
    return name(text, .subtree, take)
  }
}

extension LineText {
  /// Without what stands behind a `#` at the start or after a blank.
  fileprivate var withoutComment: LineText {
    var searched = 0
    while let index = dropFirst(searched).index(of: "#") {
      let place = searched + index
      if place == 0 || isBlank(self[place - 1]) { return prefix(place).trimmed }
      searched = place + 1
    }
    return self
  }

  fileprivate var withoutQuotes: LineText {
    guard count >= 2, first == last, first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") else { return self }
    return dropFirst().dropLast().trimmed
  }

  /// Without `+.`, `*.` or `.` in front.
  fileprivate var withoutSubtreeMark: LineText {
    if hasPrefix("+.") || hasPrefix("*.") { return dropFirst(2) }
    return first == UInt8(ascii: ".") ? dropFirst() : self
  }

  fileprivate var firstBlank: Int? {
    var index = 0
    while index < count {
      if isBlank(self[index]) { return index }
      index += 1
    }
    return nil
  }

  /// The index of the first octet by which the forms differ.
  fileprivate var firstMark: Int? {
    var index = 0
    while index < count {
      switch self[index] {
      case UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: ","): return index
      case let octet where isBlank(octet): return index
      default: index += 1
      }
    }
    return nil
  }
}
