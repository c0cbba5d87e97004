// ProviderForms.swift -- the forms that only providers use.

import DNSWire

extension Form where Result == Configuration.ClientSubnet {
  static var clientSubnet: Form {
    Form("\"from-client\", \"\" or a prefix, e.g. \"192.0.2.0/24\"") { value in
      switch value.line {
      case "": Configuration.ClientSubnet.none
      case "from-client": .fromClient
      default: value.line.flatMap { IPPrefix(text: $0) }.map { .fixed($0) }
      }
    }
  }
}

extension Form where Result == String {
  /// A name or an address to check a certificate against.
  static var tlsName: Form {
    Form("a host name, or an address without brackets") { value in value.line.flatMap { Host(text: $0)?.text } }
  }

  /// A pin in libcurl's form: SHA-256 of the public key, 32 octets in Base64.
  static var pin: Form {
    Form("\"sha256//\" and 44 characters of Base64") { value in
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
