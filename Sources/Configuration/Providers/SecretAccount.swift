// SecretAccount.swift -- the account of services that know it by an id and one secret.

import Ciphers

extension Configuration {
  /// An account of a service that knows it by an id and one secret.
  public struct SecretAccount: Concealed, Hashable, Sendable {
    /// What requests name it by.
    public var id: String
    /// Key for signatures. Never sent.
    public var secret: Secret

    public init(id: String, secret: Secret) {
      self.id = id
      self.secret = secret
    }
  }
}
