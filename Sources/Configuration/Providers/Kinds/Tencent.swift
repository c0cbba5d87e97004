// Tencent.swift -- the keys of kind "tencent": cipher, id, key and token.

import Ciphers
import DNSWire

extension Configuration {
  /// An account of Tencent Cloud HTTPDNS, by the cipher that protects names and answers in transit.
  public enum TencentAccount: Concealed, Hashable, Sendable {
    /// TLS only; the token identifies the account. `id` is sent if it is given, as the provider's own SDKs do.
    case https(token: Secret, id: String?)
    /// AES-128-CBC, which does not detect modified replies. The key is exactly 16 ASCII characters.
    case aes(id: String, key: Secret)
    /// DES-ECB, which is broken: for services that offer nothing else. The key is at least 8 ASCII characters, of which the
    /// first 8 are used.
    case des(id: String, key: Secret)
  }
}

/// The values of `cipher`.
enum TencentCipher: String, CaseIterable {
  case https, aes, des

  /// The scheme that the provider documents for this cipher.
  var scheme: Scheme { self == .https ? .https : .http }

  /// The form of the key; nil if the cipher has none.
  var keyForm: SecretForm? {
    switch self {
    case .https: nil
    case .aes: SecretForm("exactly 16 ASCII characters for cipher \"aes\"") { $0.count == 16 && isASCII($0) }
    case .des: SecretForm("at least 8 ASCII characters for cipher \"des\"") { $0.count >= 8 && isASCII($0) }
    }
  }
}

extension Configuration.TencentAccount {
  /// The keys that identify the account to the provider.
  var accountKeys: [String] {
    switch self {
    case .https(_, let id): id == nil ? ["token"] : ["token", "id"]
    case .aes, .des: ["id", "key"]
    }
  }

  /// The account in the fingerprints of cached answers.
  var meaning: String {
    switch self {
    case .https(_, let id): "https id=\(id ?? "-")"
    case .aes(let id, _): "aes id=\(id)"
    case .des(let id, _): "des id=\(id)"
    }
  }

  /// Reads the account of a provider. After a mistake, required values stay empty.
  init(_ cipher: TencentCipher, from reader: TableReader) {
    /// Authorization ID; needed with `aes` and `des`.
    var id: String?
    reader.read("id", &id, .accountNumber)
    let user = "cipher \"\(cipher)\""
    guard let keyForm = cipher.keyForm else {
      reader.refuseSecret("key", "not used by \(user), which takes token", alternative: "cipher = \"aes\" or \"des\"")
      /// Token of the account; needed with `https`.
      let token = reader.requiredSecret("token", of: user, .token)
      self = .https(token: token, id: id)
      return
    }
    reader.refuseSecret("token", "not used by \(user), which takes id and key")
    reader.require("id", allowed: "the account's id for \(user)")
    /// Key of the cipher; needed with `aes` and `des`.
    let key = reader.requiredSecret("key", of: user, keyForm)
    if cipher == .des {
      reader.warn("cipher", "DES is broken: anyone can try all keys, then read and forge every answer")
    }
    self = cipher == .aes ? .aes(id: id ?? "", key: key) : .des(id: id ?? "", key: key)
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "tencent".
  mutating func readTencent(from reader: TableReader) {
    /// Protection of questions and answers; `des` is broken.
    var cipher = TencentCipher.https
    reader.read("cipher", &cipher, .choice)
    scheme = cipher.scheme
    reader.read("scheme", &scheme, .choice)
    if reader.isSound("cipher") {
      /// How long a request is valid, if the account demands that; `0s` leaves it out.
      var expiry = Duration.zero
      reader.read("expiry", &expiry, .duration(.zero ... .seconds(86_400)))
      let account = Configuration.TencentAccount(cipher, from: reader)
      kind = .tencent(account, expiry: expiry == .zero ? nil : expiry)
      if cipher == .https, scheme == .http {
        reader.refuse(
          "scheme", is: "is not valid with cipher \"https\"",
          allowed: "\"https\", or cipher = \"aes\", which needs no TLS")
      }
    } else {
      reader.ignore { ProviderKindName.tencent.owns($0) }
    }
    var endpoint = ProviderEndpoint(url: .tencent(scheme))
    // The certificate names the address (cloud.tencent.com/document/product/379/61200).
    endpoint.name = nil
    readServers(at: endpoint, from: reader)
  }
}

extension ProviderURL {
  /// The address for a scheme: one serves HTTP only, the other HTTPS only (cloud.tencent.com/document/product/379/95497
  /// and …/61200).
  static func tencent(_ scheme: Scheme) -> ProviderURL {
    ProviderURL(text: scheme == .https ? "https://119.29.29.99/d" : "http://119.29.29.98/d")!
  }
}

extension Form where Result == String? {
  /// The number that the provider assigned to an account, as text.
  fileprivate static var accountNumber: Form {
    Form("1 to 10 digits in quotes, e.g. \"1234\"") { value in
      guard let line = value.line, (1...10).contains(line.utf8.count), line.utf8.allSatisfy({ isDigit($0) }) else {
        return nil
      }
      return .some(line)
    }
  }
}

extension SecretForm {
  /// Characters that need no escape in a URL. The provider documents an integer.
  fileprivate static var token: SecretForm {
    SecretForm("1 to 63 letters, digits, \"-\", \"_\" or \".\"") { isIdentifier(String(decoding: $0, as: UTF8.self)) }
  }
}

private func isASCII(_ octets: [UInt8]) -> Bool { octets.allSatisfy { $0 < 0x80 } }
