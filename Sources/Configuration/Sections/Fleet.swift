// Fleet.swift -- the `[fleet]` section: how daemons of one site share the store of `cache.redis`.

import Ciphers

extension Configuration {
  /// Sharing answers, refreshes, units and flushes with other daemons.
  public struct Fleet: Hashable, Sendable {
    /// The prefix of every key in the store.
    public var namespace = "httpdnsd"
    /// The site; only daemons of the same one share answers.
    public var site = ""
    /// The ACL user; empty for the one in the URL, or the default one.
    public var user = ""
    /// The user's password; nil for the one in the URL, or none.
    public var password: Secret?
    /// What values are sealed with; nil for not at all.
    public var secret: Secret?
    /// A PEM file of certificates that are trusted for the store, besides the system's; nil for none.
    public var caFile: String?
    /// The name in the store's certificate, where it differs from the host in the URL; nil for the host.
    public var tlsName: String?
    /// The plain resolvers that find the store's host; empty for LocalDNS.
    public var bootstrap: [Endpoint] = []
    /// How long an answer waits for the store at most.
    public var timeout: Duration = .milliseconds(20)
    /// The time for connecting to the store, which no client waits for.
    public var connectTimeout: Duration = .milliseconds(500)
    /// How long an answer waits for another daemon that asks already.
    public var wait: Duration = .milliseconds(150)
    /// Whether `units_per_day` counts for all daemons of the site.
    public var units = true
  }
}

extension Configuration.Fleet {
  /// - Parameter url: `cache.redis`.
  mutating func read(from reader: TableReader, _ url: StoreURL?) {
    let standard = Configuration.Fleet()
    reader.read("namespace", &namespace, .namespace)
    reader.read("site", &site, .site)
    reader.read("user", &user, .userName)
    password = reader.secret("password")
    secret = reader.secret("secret", .fleetSecret)
    reader.warnOfInlineSecrets()
    reader.read("ca_file", &caFile, .optional(.absolutePath))
    if let caFile { reader.requireReadable("ca_file", caFile, mark: ("-----BEGIN CERTIFICATE", "certificate")) }
    reader.read("tls_name", &tlsName, .optional(.text))
    reader.read("bootstrap", &bootstrap, .distinctList(of: .resolver))
    reader.read("timeout", &timeout, .duration(.milliseconds(1) ... .milliseconds(500)))
    reader.read("connect_timeout", &connectTimeout, .duration(.milliseconds(10) ... .seconds(10)))
    reader.read("wait", &wait, .duration(.zero ... .seconds(2)))
    reader.read("units", &units, .boolean)
    guard let url else {
      if self != standard { reader.report.warn("has no effect: cache.redis is empty", at: reader.place) }
      return
    }
    if !user.isEmpty, !url.user.isEmpty, user != url.user {
      reader.refuse("user", is: "differs from the user in cache.redis", allowed: "only one of them")
    }
    if password != nil, url.password != nil {
      reader.refuseSecret("password", "cache.redis has a password already")
    }
    if case .tcp(_, _, isEncrypted: true) = url.place { return }
    for (key, isSet) in [("ca_file", caFile != nil), ("tls_name", tlsName != nil)] where isSet {
      reader.warn(key, "has no effect: cache.redis is not a rediss:// URL")
    }
  }

  /// Checks what concerns `cache.redis` whether or not there is a `[fleet]` section.
  func check(_ url: StoreURL?, in root: TableReader, hasLocalDNS: Bool) {
    guard let url else { return }
    let place = root.place.key("cache").key("redis")
    if case .tcp(.name(let name), _, _) = url.place {
      if bootstrap.isEmpty, !hasLocalDNS {
        root.report.refuse(
          "no resolver may look up \(name)", at: place,
          allowed: "use an address, or set fleet.bootstrap or localdns.servers", .failure)
      }
    } else if !bootstrap.isEmpty {
      root.report.warn("not used: cache.redis needs no look-up", at: root.place.key("fleet").key("bootstrap"))
    }
    if secret == nil, !url.isLocal {
      root.report.warn(
        "without fleet.secret_file whoever can write to the store decides where names lead", at: place)
    }
  }
}

extension SecretForm {
  /// A secret that cannot be guessed.
  fileprivate static var fleetSecret: SecretForm {
    SecretForm("at least 32 octets, for example from `head -c 32 /dev/urandom | base64`") { $0.count >= 32 }
  }
}

extension Form where Result == String {
  fileprivate static var namespace: Form {
    Form("1 to 64 letters, digits, \"-\", \"_\", \".\" or \":\", not ending with \":\"") { value in
      value.line.flatMap { line in
        let isPlain = line.utf8.allSatisfy { isLetterOrDigit($0) || "-_.:".utf8.contains($0) }
        return isPlain && (1...64).contains(line.utf8.count) && !line.hasSuffix(":") ? line : nil
      }
    }
  }

  fileprivate static var site: Form {
    Form("one line of at most 255 octets") { value in value.line.flatMap { $0.utf8.count <= 255 ? $0 : nil } }
  }

  fileprivate static var userName: Form {
    Form("one line without blanks") { value in value.line.flatMap { $0.contains(" ") ? nil : $0 } }
  }
}
