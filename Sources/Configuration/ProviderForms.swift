// ProviderForms.swift -- the forms that only providers use.

import DNSWire

extension Form where Result == Configuration.ClientSubnet {
  static var clientSubnet: Form {
    Form("a prefix such as \"192.0.2.0/24\", \"from-client\" or \"\"") { value in
      switch value.line {
      case "": Configuration.ClientSubnet.none
      case "from-client": .fromClient
      default: value.line.flatMap { IPPrefix(text: $0) }.map { .fixed($0) }
      }
    }
  }
}

extension Form where Result == Endpoint {
  /// A plain resolver, on port 53 where none is given.
  static var resolver: Form {
    Form("an address with or without a port, such as \"192.0.2.1\" or \"[2001:db8::1]:53\"") { value in
      value.line.flatMap { Endpoint(text: $0, defaultPort: 53) }
    }
  }
}

extension Form where Result == String {
  /// A name, or an address, that a certificate can hold.
  static var tlsName: Form {
    Form("a host name, or an address without brackets") { value in value.line.flatMap { Host(text: $0)?.text } }
  }

  /// A pin as libcurl takes it: SHA-256 of the public key, 32 octets in base64.
  static var pin: Form {
    Form("\"sha256//\" and 44 characters of base64") { value in
      guard let line = value.line, line.hasPrefix("sha256//") else { return nil }
      let base64 = line.dropFirst(8)
      let isSound = base64.utf8.count == 44 && base64.hasSuffix("=") && base64.utf8.dropLast().allSatisfy(isBase64)
      return isSound ? line : nil
    }
  }
}

private func isBase64(_ octet: UInt8) -> Bool {
  isLetterOrDigit(octet) || octet == UInt8(ascii: "+") || octet == UInt8(ascii: "/")
}
