// EMAS.swift -- the keys of kind "emas": account, API version, encryption and region.

import Ciphers
import DNSWire

extension Configuration {
  /// An account of EMAS HTTPDNS.
  public struct EMASAccount: Hashable, Sendable {
    /// Account ID; always needed. Part of the path (`v1`), or sent as `id` (`v2`).
    public var accountID: String
    /// Key for signatures; without it requests are unsigned.
    public var secretKey: Secret?
    /// Version of the service's interface.
    public var api = EMASAPI.v1
    /// Encryption key, only with `v2`; without it nothing is encrypted.
    public var aesSecretKey: Secret?
    /// Mode of the encryption, only with `aes_secret_key`.
    public var aesMode = AESMode.cbc
    /// Region of the servers; `global` means the nearest ones.
    public var region = EMASRegion.global
    /// Whether the list of servers is fetched from `servers`, which are boot addresses then. By `/ss`.
    public var isScheduled = true
    /// Parameters that the account defines, sent as they are.
    public var parameters: [String: String] = [:]
  }

  /// The versions of the EMAS HTTPDNS API.
  public enum EMASAPI: String, CaseIterable, Hashable, Sendable {
    /// `/{account}/d` and related paths, signed with MD5.
    case v1
    /// `/v2/d`, signed with HMAC-SHA256, with or without encryption.
    case v2
  }

  /// The modes of AES-128 that EMAS HTTPDNS supports.
  public enum AESMode: String, CaseIterable, Hashable, Sendable {
    /// Cipher block chaining with PKCS#7 padding; unauthenticated.
    case cbc
    /// Galois/counter mode, which detects modified messages.
    case gcm
  }
}

extension Configuration.EMASAccount {
  /// The keys that identify the account to the provider.
  var accountKeys: [String] { ["account_id", "secret_key"] + (aesSecretKey == nil ? [] : ["aes_secret_key"]) }

  /// The account in the fingerprints of cached answers.
  var meaning: String {
    let cipher = aesSecretKey == nil ? "none" : aesMode.rawValue
    return "\(api.rawValue) account=\(accountID) signed=\(secretKey != nil) cipher=\(cipher) region=\(region.rawValue)"
      + " schedule=\(isScheduled)" + parameters.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
  }

  /// The path of the API; with `v1`, the kind of request is appended to it.
  var path: String { api == .v1 ? "/\(accountID)" : "/v2/d" }

  /// Reads the account of a provider. After a mistake, required values stay empty.
  init(from reader: TableReader) {
    self.init(accountID: "")
    reader.require("account_id", allowed: "the id of the EMAS account")
    reader.read("account_id", &accountID, .identifier)
    reader.read("api", &api, .choice)
    reader.read("aes_mode", &aesMode, .choice)
    reader.read("region", &region, .choice)
    reader.read("schedule", &isScheduled, .boolean)
    reader.read("parameters", &parameters, .emasParameters)
    secretKey = reader.secret("secret_key", api == .v2 && reader.isSound("api") ? .hexadecimal : nil)
    guard reader.isSound("api"), api == .v1 else {
      aesSecretKey = reader.secret("aes_secret_key", .aesKey)
      if reader.isGiven("aes_mode"), reader.isSound("aes_mode"), !reader.isSecretGiven("aes_secret_key") {
        reader.refuse(
          "aes_mode", "has no effect without aes_secret_key", remedy: "give the encryption key or remove aes_mode")
      }
      return
    }
    let problem = "not supported by api \"v1\", which does not encrypt"
    let alternative = "api = \"v2\""
    reader.refuseSecret("aes_secret_key", problem, alternative: alternative)
    if reader.isGiven("aes_mode") {
      reader.refuse("aes_mode", problem, remedy: "remove aes_mode or set \(alternative)")
    }
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "emas".
  mutating func readEMAS(from reader: TableReader) {
    let account = Configuration.EMASAccount(from: reader)
    kind = .emas(account)
    reader.read("scheme", &scheme, .choice)
    let url = ProviderURL.emas.with(scheme).with(path: account.path)
    var endpoint = ProviderEndpoint(url: url, addresses: account.region.bootServers(family))
    // Over http the provider's clients send the address as Host.
    if scheme == .http { endpoint.name = nil }
    readServers(at: endpoint, from: reader)
  }
}

extension Configuration.Server {
  /// The server as EMAS is asked for its list of servers: over https, also where names are resolved over http, since the list
  /// is saved. A server with a port of its own keeps its scheme.
  public var ofSchedule: Configuration.Server {
    guard scheme == .http, port == scheme.defaultPort else { return self }
    var server = self
    (server.scheme, server.port, server.tlsName) = (.https, Scheme.https.defaultPort, ProviderURL.emas.host.text)
    return server
  }
}

extension ProviderURL {
  /// The certificates of all boot and service addresses have this name.
  static let emas = ProviderURL(text: "https://resolvers.httpdns.aliyuncs.com/")!
}

extension Form where Result == [String: String] {
  /// Parameters of EMAS: names begin with `sdns-`, or `tags`.
  fileprivate static var emasParameters: Form {
    let allowed =
      "a table with \"tags\" or \"sdns-…\" as keys; letters, digits, \"-\", \"_\" and \"=\" as values; 1000 in all"
    return Form(allowed) { value in
      guard case .table(let table) = value else { return nil }
      var parameters: [String: String] = [:]
      for (name, value) in table {
        let isName = name == "tags" || name.hasPrefix("sdns-") && name.utf8.count > 5
        guard isName, let text = value.line, !text.isEmpty,
          name.utf8.allSatisfy({ isLetterOrDigit($0) || "-_".utf8.contains($0) }),
          text.utf8.allSatisfy({ isLetterOrDigit($0) || "-_=".utf8.contains($0) })
        else { return nil }
        parameters[name] = text
      }
      let size = parameters.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
      return size <= 1000 ? parameters : nil
    }
  }
}

extension SecretForm {
  fileprivate static var hexadecimal: SecretForm {
    SecretForm("an even number of hexadecimal digits for api \"v2\"") { Hexadecimal.decode($0) != nil }
  }

  fileprivate static var aesKey: SecretForm {
    SecretForm("32 hexadecimal digits") { Hexadecimal.decode($0)?.count == 16 }
  }
}
