// Fleet.swift -- the `[fleet]` section: how daemons share the store of `cache.redis`.

import Ciphers
import DNSWire

extension Configuration {
  /// How daemons share answers through the store that `cache.redis` names. Has no effect without one.
  public struct Fleet: Hashable, Sendable {
    /// Prefix of every key in the store.
    public var namespace = "httpdnsd"
    /// Daemons share answers only with others of the same site.
    public var site = ""
    /// ACL user of the store; empty means the default user, or the one in the URL.
    public var user: String?
    /// Password of the store. From here or from the URL.
    public var password: Secret?
    /// Secret of all daemons of the fleet, which seals what they store.
    public var secret: Secret?
    /// With `rediss://`, PEM file with certificate authorities; empty means the system's.
    public var caFile: String?
    /// With `rediss://`, name in the certificate; empty means the host in the URL.
    public var tlsName: String?
    /// Plain resolvers that find a store given by name; empty means LocalDNS.
    public var bootstrap: [ResolverAddress] = []
    /// Longest time that an answer waits for the store. All exchanges together.
    public var timeout: Duration = .milliseconds(20)
    /// Time for connecting to the store; no client waits for that.
    public var connectTimeout: Duration = .milliseconds(500)
    /// Longest wait for another daemon that asks already; `0s` means none.
    public var wait: Duration = .milliseconds(150)
    /// Whether `units_per_day` limits the billing units of all daemons together.
    public var units = true
  }
}

extension Configuration.Fleet {
  /// - Parameters:
  ///   - others: the sections that this one is checked against.
  ///   - isStoreSound: whether `cache.redis` is valid.
  mutating func read(from reader: TableReader, beside others: Configuration, isStoreSound: Bool) {
    reader.read("namespace", &namespace, .namespace)
    reader.read("site", &site, .site)
    reader.read("user", &user, .optional(.text))
    password = reader.secret("password")
    secret = reader.secret("secret", .sealingSecret)
    reader.warnOfInlineSecrets()
    reader.read("ca_file", &caFile, .optional(.absolutePath))
    reader.read("tls_name", &tlsName, .optional(.tlsName))
    reader.read("bootstrap", &bootstrap, .distinctList(of: .resolver))
    reader.read("timeout", &timeout, .duration(.milliseconds(1) ... .milliseconds(500)))
    reader.read("connect_timeout", &connectTimeout, .duration(.milliseconds(10) ... .seconds(10)))
    reader.read("wait", &wait, .duration(.zero ... .seconds(2)))
    reader.read("units", &units, .boolean)
    if let caFile { reader.requireReadable("ca_file", caFile, mark: ("CERTIFICATE-----", "PEM certificates")) }
    reader.refuseOwn("bootstrap", bootstrap.map { .resolver($0) }, others.listen.addresses)
    guard isStoreSound else { return }
    guard let store = others.cache.redis else {
      if self != Configuration.Fleet() { reader.report.warn("has no effect without cache.redis", at: reader.place) }
      return
    }
    checkHost(of: store, reader, hasLocalDNS: others.hasLocalDNS)
    joinCredentials(of: store, reader)
  }

  /// Warns about a store that others can reach, and about keys that have no effect on this one.
  private func checkHost(of store: Configuration.StoreURL, _ reader: TableReader, hasLocalDNS: Bool) {
    if store.scheme != .rediss {
      if caFile != nil { reader.warn("ca_file", "has no effect without rediss:// in cache.redis") }
      if tlsName != nil { reader.warn("tls_name", "has no effect without rediss:// in cache.redis") }
    }
    if !store.isOnThisMachine, !reader.isSecretGiven("secret") {
      reader.report.warn(
        "without fleet.secret_file an attacker with write access to the store can forge answers", at: .store)
    }
    if case .host(.name(let name), _) = store.endpoint, !Configuration.StoreURL.isLocal("\(name)") {
      if bootstrap.isEmpty, !hasLocalDNS, reader.isSound("bootstrap") {
        reader.report.refuse(
          "the URL's host is a name and nothing can resolve it", at: .store,
          allowed: "use an address in the URL, or set fleet.bootstrap or localdns.servers", .failure)
      }
    } else if !bootstrap.isEmpty {
      reader.warn("bootstrap", "not used: cache.redis has no name to look up")
    }
  }

  /// Takes user and password from the URL, unless that contradicts this section.
  private mutating func joinCredentials(of store: Configuration.StoreURL, _ reader: TableReader) {
    if let storeUser = store.user {
      if let user, user != storeUser {
        reader.refuse("user", "cache.redis has another user", remedy: "remove one of them")
      }
      user = storeUser
    }
    if let storePassword = store.password {
      reader.refuseSecret("password", "cache.redis has a password too")
      reader.report.warn(
        "everyone who can read this file can read the password; use fleet.password_file instead", at: .store)
      password = storePassword
    }
  }
}

extension ValuePath {
  fileprivate static let store = ValuePath.root.key("cache").key("redis")
}

extension Configuration.StoreURL {
  /// Whether only this machine can reach the store: by a Unix socket or a loopback address.
  fileprivate var isOnThisMachine: Bool {
    switch endpoint {
    case .socket: true
    case .host(.address(let address), _): address.isLoopback
    case .host(let host, _): Configuration.StoreURL.isLocal(host.text)
    }
  }

  /// Whether a host of a URL is the name of this machine's loopback, which no resolver is asked for (RFC 6761, 6.3).
  package static func isLocal(_ host: String) -> Bool { host.lowercased() == "localhost" }
}

extension SecretForm {
  fileprivate static var sealingSecret: SecretForm {
    SecretForm("at least 32 octets: make one with `head -c 32 /dev/urandom | base64`") { $0.count >= 32 }
  }
}

extension Form where Result == String {
  /// The prefix of keys in a store, as an ACL pattern can name it.
  fileprivate static var namespace: Form {
    Form("1 to 64 letters, digits, \"-\", \"_\", \".\" or \":\", not \":\" at the end") { value in
      guard let line = value.line, (1...64).contains(line.utf8.count), !line.hasSuffix(":"),
        line.utf8.allSatisfy({ isLetterOrDigit($0) || "-_.:".utf8.contains($0) })
      else { return nil }
      return line
    }
  }

  fileprivate static var site: Form {
    Form("one line of at most 255 characters") { value in
      value.line.flatMap { $0.unicodeScalars.count <= 255 ? $0 : nil }
    }
  }
}
