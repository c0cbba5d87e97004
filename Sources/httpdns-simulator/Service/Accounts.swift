// Accounts.swift -- the simulated accounts; their descriptions do not contain secrets.

/// The account of Tencent's service.
struct TencentAccount: Sendable, CustomStringConvertible, CustomReflectable {
  /// The number in `id`, 1 to 100000.
  var identifier = "1234"
  /// The key for `alg=des`, as text; only the first 8 octets count.
  var desKey = "DesKey01"
  /// The key for `alg=aes`, as text of 16 octets.
  var aesKey = "AesKey0123456789"
  /// The number in `token`.
  var token = "123456789"

  var description: String { "account \(identifier)" }
  var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

/// The account of Alibaba's EMAS service.
struct EMASAccount: Sendable, CustomStringConvertible, CustomReflectable {
  /// The number in the path or in `id`.
  var identifier = "100000"
  /// The key of signatures: v1 uses the text, v2 the octets of its hexadecimal digits. If empty, signatures are not
  /// checked.
  var secret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  /// The key of v2's encrypted modes, 16 octets in hexadecimal. If empty, these modes are refused.
  var aesSecret = "00112233445566778899aabbccddeeff"

  var description: String { "account \(identifier)" }
  var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

/// The account of a service that knows one secret for an identifier.
struct SecretAccount: Sendable, CustomStringConvertible, CustomReflectable {
  /// What requests name the account by.
  var identifier: String
  /// What signatures are made with.
  var secret: String

  var description: String { "account \(identifier)" }
  var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}
