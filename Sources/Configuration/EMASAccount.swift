// EMASAccount.swift -- the keys of kind "emas": account, generation of the interface, encryption and region.

import Ciphers
import DNSWire

extension Configuration {
  /// An account of EMAS HTTPDNS.
  public struct EMASAccount: Hashable, Sendable {
    /// The account's number: a part of the path (`v1`), or sent as `id` (`v2`).
    public var accountID: String
    /// What signs: any text for `v1`, hexadecimal digits for `v2`. Nil leaves requests unsigned.
    public var secretKey: Secret?
    /// Which generation of the interface is spoken.
    public var api: EMASAPI
    /// The key of the encryption as 32 hexadecimal digits, which are 16 octets; only with `v2`. Nil encrypts nothing.
    public var aesSecretKey: Secret?
    /// How it encrypts.
    public var aesMode: AESMode
    /// Where service addresses are wanted.
    public var region: EMASRegion
    /// Whether service addresses come from the scheduling interface (`/ss`), asked at the provider's servers.
    public var isScheduled: Bool

    /// An account of these parts; all but the number have the defaults of the file.
    public init(
      accountID: String, secretKey: Secret? = nil, api: EMASAPI = .v1, aesSecretKey: Secret? = nil,
      aesMode: AESMode = .cbc, region: EMASRegion = .cn, isScheduled: Bool = true
    ) {
      self.accountID = accountID
      self.secretKey = secretKey
      self.api = api
      self.aesSecretKey = aesSecretKey
      self.aesMode = aesMode
      self.region = region
      self.isScheduled = isScheduled
    }
  }

  /// The generations of EMAS HTTPDNS's interface.
  public enum EMASAPI: String, CaseIterable, Hashable, Sendable {
    /// `/{account}/d` and its relatives, signed by MD5.
    case v1
    /// `/v2/d`, signed by HMAC-SHA256, with or without encryption.
    case v2
  }

  /// The modes of AES-128 that EMAS HTTPDNS knows.
  public enum AESMode: String, CaseIterable, Hashable, Sendable {
    /// Cipher block chaining, padded as PKCS#7 says.
    case cbc
    /// Galois/counter mode: what was changed on the way is noticed.
    case gcm
  }
}

extension Configuration.EMASAccount {
  /// The path of the interface: `v1` has the account in it, and the kind of request behind it.
  var path: String { api == .v1 ? "/\(accountID)" : "/v2/d" }

  /// The account of a provider. Where something about it is a mistake, what is missing stays empty.
  init(from reader: TableReader) {
    self.init(accountID: "")
    reader.require("account_id", allowed: "the account's id, with kind \"emas\"")
    reader.read("account_id", &accountID, .identifier)
    reader.read("api", &api, .choice)
    reader.read("aes_mode", &aesMode, .choice)
    reader.read("region", &region, .choice)
    reader.read("schedule", &isScheduled, .boolean)
    secretKey = reader.secret("secret_key", api == .v2 && reader.isSound("api") ? .hexadecimal : nil)
    guard reader.isSound("api"), api == .v1 else {
      aesSecretKey = reader.secret("aes_secret_key", .aesKey)
      if reader.isGiven("aes_mode"), reader.isSound("aes_mode"), !reader.isSecretGiven("aes_secret_key") {
        reader.refuse("aes_mode", allowed: "nothing here without aes_secret_key, the key to encrypt with")
      }
      return
    }
    let allowed = "nothing here with api \"v1\", which encrypts nothing; or api = \"v2\""
    reader.refuseSecret("aes_secret_key", allowed: allowed)
    if reader.isGiven("aes_mode") { reader.refuse("aes_mode", allowed: allowed) }
  }
}

extension SecretForm {
  fileprivate static var hexadecimal: SecretForm {
    SecretForm("an even number of hexadecimal digits with api \"v2\"") { Hexadecimal.decode($0) != nil }
  }

  fileprivate static var aesKey: SecretForm {
    SecretForm("32 hexadecimal digits") { Hexadecimal.decode($0)?.count == 16 }
  }
}
