// SecretForm.swift -- what a secret has to look like, and what is said of one that must or must not be there.

import Ciphers

/// What a secret has to look like.
struct SecretForm {
  /// What is allowed, in words.
  let allowed: String
  /// Whether these octets, which are one line of text, are.
  let accepts: ([UInt8]) -> Bool

  /// A form by its words and its test.
  init(_ allowed: String, _ accepts: @escaping ([UInt8]) -> Bool) {
    self.allowed = allowed
    self.accepts = accepts
  }
}

extension TableReader {
  /// The secret of a key that `user` cannot do without; empty where it is not given or is a mistake.
  func requiredSecret(_ key: String, of user: String, _ form: SecretForm) -> Secret {
    if !isSecretGiven(key) { require(key, allowed: "\(key)_file, _credential or _env, which \(user) needs") }
    return secret(key, form) ?? Secret("")
  }

  /// Records every way in which a secret is given that has no use here.
  func refuseSecret(_ key: String, allowed: String) {
    for way in waysGiven(key) { refuse(way, allowed: allowed) }
  }
}
