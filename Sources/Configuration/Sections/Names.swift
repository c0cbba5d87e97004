// Names.swift -- the `[names]` section: names that the daemon answers itself, and rebind protection.

import DNSWire

extension Configuration {
  /// Names that the daemon answers itself, and rebind protection.
  public struct Names: Hashable, Sendable {
    /// Hosts file to answer from; empty means none.
    public var hostsFile: String? = "/etc/hosts"
    /// Whether special-use names never go to a provider. RFC 6761 and others.
    public var special = true
    /// Whether answers that lead public names to private addresses are made empty.
    public var rebindProtection = false
    /// Names that may have private addresses nevertheless.
    public var rebindAllow: [NamePattern] = []
    /// Further prefixes that count as private.
    public var rebindPrefixes: [IPPrefix] = []
    /// Whether AAAA is made of A for networks with IPv6 alone, and by which prefix.
    public var dns64 = DNS64.auto
  }

  /// Whether AAAA records are made of A records, and by which prefix (RFC 6147).
  public enum DNS64: Hashable, Sendable {
    /// By the network's own prefix (RFC 7050), where the machine has no route to IPv4.
    case auto
    /// Never.
    case off
    /// Always, by this prefix.
    case prefix(NAT64Prefix)
  }
}

extension Configuration.Names {
  mutating func read(from reader: TableReader) {
    reader.read("hosts_file", &hostsFile, .optional(.absolutePath))
    reader.read("special", &special, .boolean)
    reader.read("rebind_protection", &rebindProtection, .boolean)
    reader.read("rebind_allow", &rebindAllow, .distinctList(of: .namePattern))
    reader.read("rebind_prefixes", &rebindPrefixes, .distinctList(of: .prefix))
    reader.read("dns64", &dns64, .dns64)
  }
}

extension Form where Result == IPPrefix {
  static var prefix: Form {
    Form("a prefix, e.g. \"203.0.113.0/24\" or \"2001:db8::/32\"") { value in
      value.line.flatMap { IPPrefix(text: $0) }
    }
  }
}

extension Form where Result == Configuration.DNS64 {
  static var dns64: Form {
    Form("\"auto\", \"off\" or an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, e.g. \"64:ff9b::/96\"") { value in
      switch value.line {
      case "auto": .auto
      case "off": .off
      case let text?: IPPrefix(text: text).flatMap { NAT64Prefix($0) }.map { .prefix($0) }
      case nil: nil
      }
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
