// Names.swift -- the `[names]` section: names that the daemon answers itself, and rebind protection.

import DNSWire

extension Configuration {
  /// Names that the daemon answers itself, and rebind protection.
  public struct Names: Hashable, Sendable {
    /// The hosts file; nil means none.
    public var hostsFile: String? = "/etc/hosts"
    /// Whether special-use names (RFC 6761 and others) are answered locally and never forwarded.
    public var special = true
    /// Whether private addresses are removed from answers for public names.
    public var rebindProtection = false
    /// Names that may have private addresses all the same.
    public var rebindAllow: [NamePattern] = []
    /// Addresses that count as private in addition to those that are not routed on the Internet.
    public var rebindPrefixes: [IPPrefix] = []
  }
}

extension Configuration.Names {
  mutating func read(from reader: TableReader) {
    reader.read("hosts_file", &hostsFile, .optional(.absolutePath))
    reader.read("special", &special, .boolean)
    reader.read("rebind_protection", &rebindProtection, .boolean)
    reader.read("rebind_allow", &rebindAllow, .distinctList(of: .namePattern))
    reader.read("rebind_prefixes", &rebindPrefixes, .distinctList(of: .prefix))
  }
}

extension Form where Result == IPPrefix {
  static var prefix: Form {
    Form("a prefix, e.g. \"203.0.113.0/24\" or \"2001:db8::/32\"") { value in
      value.line.flatMap { IPPrefix(text: $0) }
    }
  }
}

extension Form where Result == NamePattern {
  static var namePattern: Form {
    Form(
      "\"example.com\" (and below), \"*.example.com\" (below), \"=example.com\" or \".\" (every name), in ASCII (xn--…)"
    ) { value in
      value.line.flatMap { NamePattern(text: $0) }
    }
  }
}
