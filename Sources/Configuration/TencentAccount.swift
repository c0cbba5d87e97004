// TencentAccount.swift -- the keys of kind "tencent": how names are encrypted, and with what.

import Ciphers
import DNSWire

extension Configuration {
  /// An account of Tencent Cloud HTTPDNS, by the cipher that hides names and answers on the way.
  public enum TencentAccount: Hashable, Sendable {
    /// Nothing but TLS; the token says who asks. `id` is sent where it is given.
    case https(token: Secret, id: String?)
    /// AES-128-CBC. The key has exactly 16 octets, all of them ASCII.
    case aes(id: String, key: Secret)
    /// DES-ECB, which is broken. The key has at least 8 octets, all of them ASCII; the first 8 count.
    case des(id: String, key: Secret)
  }
}

/// The values of `cipher`.
enum TencentCipher: String, CaseIterable {
  case https, aes, des

  /// The transport that the service is documented for with this cipher.
  var scheme: Scheme { self == .https ? .https : .http }

  /// What a key of this cipher looks like.
  var keyForm: SecretForm? {
    switch self {
    case .https: nil
    case .aes: SecretForm("exactly 16 characters of ASCII with cipher \"aes\"") { $0.count == 16 && isASCII($0) }
    case .des: SecretForm("at least 8 characters of ASCII with cipher \"des\"") { $0.count >= 8 && isASCII($0) }
    }
  }
}

extension Configuration.TencentAccount {
  /// The account of a provider. Where something about it is a mistake, what is missing stays empty.
  init(_ cipher: TencentCipher, from reader: TableReader) {
    var id: String?
    reader.read("id", &id, .accountNumber)
    let user = "cipher \"\(cipher)\""
    guard let keyForm = cipher.keyForm else {
      reader.refuseSecret("key", allowed: "nothing here with \(user), which takes token; or cipher = \"aes\"")
      self = .https(token: reader.requiredSecret("token", of: user, .token), id: id)
      return
    }
    reader.refuseSecret("token", allowed: "nothing here with \(user), which takes id and key")
    reader.require("id", allowed: "the account's id, which \(user) needs")
    let key = reader.requiredSecret("key", of: user, keyForm)
    if cipher == .des {
      reader.warn("cipher", "DES is broken: who tries all of its keys can read and forge every answer")
    }
    self = cipher == .aes ? .aes(id: id ?? "", key: key) : .des(id: id ?? "", key: key)
  }
}

extension Form where Result == String? {
  /// A number that a provider gave to an account, as text.
  fileprivate static var accountNumber: Form {
    Form("1 to 10 digits as text, such as \"1234\"") { value in
      guard let line = value.line, (1...10).contains(line.utf8.count), line.utf8.allSatisfy({ isDigit($0) }) else {
        return nil
      }
      return .some(line)
    }
  }
}

extension SecretForm {
  /// What may stand in a URL as it is; the provider documents an integer.
  fileprivate static var token: SecretForm {
    SecretForm("up to 63 letters, digits, \"-\", \"_\" or \".\"") { isIdentifier(String(decoding: $0, as: UTF8.self)) }
  }
}

private func isASCII(_ octets: [UInt8]) -> Bool { octets.allSatisfy { $0 < 0x80 } }
