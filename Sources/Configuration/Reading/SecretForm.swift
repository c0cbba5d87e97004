// SecretForm.swift -- the form of a secret, and secrets that are required or not allowed.

import Ciphers

struct SecretForm {
  /// The allowed form, as the object of "expected".
  let allowed: String
  /// Whether the octets, which are one line of UTF-8, have the form.
  let accepts: ([UInt8]) -> Bool

  init(_ allowed: String, _ accepts: @escaping ([UInt8]) -> Bool) {
    self.allowed = allowed
    self.accepts = accepts
  }
}

extension TableReader {
  /// The secret of a key that `user` requires. Records a mistake and returns an empty secret if it is missing or invalid.
  func requiredSecret(_ key: String, of user: String, _ form: SecretForm? = nil) -> Secret {
    if !isSecretGiven(key) { require(key, allowed: "\(key)_file, \(key)_credential or \(key)_env for \(user)") }
    return secret(key, form) ?? Secret("")
  }

  /// Records a mistake for every key that gives a secret where none is allowed. The remedy names that key: "the key"
  /// would be ambiguous beside keys that are called so.
  ///
  /// - Parameter alternative: a setting with which the secret is allowed, if there is one.
  func refuseSecret(_ key: String, _ problem: String, alternative: String? = nil) {
    for way in waysGiven(key) {
      refuse(way, problem, remedy: "remove \(way)" + (alternative.map { " or set \($0)" } ?? ""))
    }
  }
}
