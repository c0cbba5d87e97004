// FleetSectionTests.swift -- the `[fleet]` section: its keys, its secrets, and what contradicts `cache.redis`.

import Ciphers
import Configuration
import DNSWire
import Testing

private let store = "cache.redis = \"redis://127.0.0.1\"\n"
private let remoteStore = "cache.redis = \"redis://10.0.0.1\"\n"
private let seal = "0123456789abcdef0123456789abcdef"

/// The mistakes, without the name of the file.
private func faults(_ text: String, environment: [String: String] = [:]) -> [String] {
  mistakes(text, environment: environment).map { String($0.dropFirst("test.toml: ".count)) }
}

/// The warnings, without the name of the file.
private func remarks(_ text: String, environment: [String: String] = [:]) -> [String] {
  warnings(text, environment: environment).map { String($0.dropFirst("test.toml: ".count)) }
}

@Suite struct FleetSectionTests {
  @Test func `the URL of a store alone is enough, and on this machine without a warning`() throws {
    #expect(try configuration(store).fleet == Configuration().fleet)
    for url in ["redis://127.0.0.1:6379/0", "redis://[::1]", "rediss://127.9.9.9", "unix:///run/s"] {
      #expect(messages("cache.redis = \"\(url)\"") == [])
    }
  }

  @Test func `the defaults`() {
    let fleet = Configuration().fleet
    #expect(fleet.namespace == "httpdnsd")
    #expect(fleet.site == "")
    #expect(fleet.user == nil && fleet.password == nil && fleet.secret == nil)
    #expect(fleet.caFile == nil && fleet.tlsName == nil && fleet.bootstrap == [])
    #expect(fleet.timeout == .milliseconds(20))
    #expect(fleet.connectTimeout == .milliseconds(500))
    #expect(fleet.wait == .milliseconds(150))
    #expect(fleet.units)
  }

  @Test func `every key is read`() throws {
    try withFile("-----BEGIN CERTIFICATE-----\n") { _, path in
      let text = """
        cache.redis = "rediss://store.example"
        [fleet]
        namespace = "dns:1"
        site = "Köln 2"
        user = "httpdnsd"
        password_env = "PASSWORD"
        secret_env = "SECRET"
        ca_file = "\(path)"
        tls_name = "Store.Example"
        bootstrap = ["192.0.2.53", "[2001:db8::53]:5353"]
        timeout = "500ms"
        connect_timeout = "10s"
        wait = "0s"
        units = false
        """
      let environment = ["PASSWORD": "password", "SECRET": seal]
      let fleet = try configuration(text, environment: environment).fleet
      #expect(fleet.namespace == "dns:1")
      #expect(fleet.site == "Köln 2")
      #expect(fleet.user == "httpdnsd")
      #expect(fleet.password == Secret("password"))
      #expect(fleet.secret == Secret(seal))
      #expect(fleet.caFile == path)
      #expect(fleet.tlsName == "store.example")
      #expect(fleet.bootstrap.map(\.description) == ["192.0.2.53:53", "[2001:db8::53]:5353"])
      #expect(fleet.timeout == .milliseconds(500))
      #expect(fleet.connectTimeout == .seconds(10))
      #expect(fleet.wait == .zero)
      #expect(!fleet.units)
      #expect(warnings(text, environment: environment) == [])
    }
  }

  @Test(arguments: [
    "namespace = \"a\"", "namespace = \"A-z_0.9:x\"", "site = \"\"", "user = \"\"", "ca_file = \"\"", "tls_name = \"\"",
    "bootstrap = []", "timeout = \"1ms\"", "connect_timeout = \"10ms\"", "wait = \"0ms\"", "wait = \"2s\"",
    "namespace = \"\(String(repeating: "n", count: 64))\"", "site = \"\(String(repeating: "ß", count: 255))\"",
  ])
  func `what is allowed is read`(line: String) { #expect(messages("\(store)[fleet]\n\(line)") == []) }

  @Test(arguments: [
    "namespace = \"\"", "namespace = \"a:\"", "namespace = \":\"", "namespace = \"a b\"", "namespace = \"a*\"",
    "namespace = \"ü\"", "namespace = \"\(String(repeating: "n", count: 65))\"", "namespace = 1", "site = \"a\\nb\"",
    "site = \"\(String(repeating: "s", count: 256))\"", "site = 3", "user = \"a\\tb\"", "user = 1",
    "ca_file = \"ca.pem\"", "ca_file = \"/nonexistent/ca.pem\"", "tls_name = \"a b\"", "tls_name = \"[::1]\"",
    "bootstrap = [\"store.example\"]", "bootstrap = \"192.0.2.1\"", "bootstrap = [\"192.0.2.1:0\"]",
    "bootstrap = [\"192.0.2.1\", \"192.0.2.1:53\"]", "bootstrap = [\"127.0.0.1\"]", "timeout = \"0ms\"",
    "timeout = \"501ms\"", "timeout = 20", "connect_timeout = \"9ms\"", "connect_timeout = \"11s\"",
    "wait = \"2001ms\"", "wait = \"-1ms\"", "units = 1",
  ])
  func `what is not allowed is one mistake, which names the key`(line: String) {
    let found = faults("\(store)[fleet]\n\(line)")
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("fleet.\(line.prefix { $0 != " " })") == true, "\(found)")
  }

  @Test(arguments: ["client_certificate_file", "client_key_file", "sentinel", "redis"])
  func `a key that does not exist is unknown`(key: String) {
    #expect(faults("\(store)[fleet]\n\(key) = \"/x\"").map { $0.hasPrefix("fleet.\(key): unknown key") } == [true])
  }

  // MARK: secrets

  @Test func `secret and password are read from files of mode 0600`() throws {
    try withFile("\(seal)\n") { _, path in
      let text = "\(remoteStore)[fleet]\nsecret_file = \"\(path)\"\npassword_file = \"\(path)\""
      let loaded = try parse(text).get()
      #expect(loaded.configuration.fleet.secret == Secret(seal))
      #expect(loaded.configuration.fleet.password == Secret(seal))
      #expect(loaded.secretFiles == ["fleet.password_file", "fleet.secret_file"])
      #expect(loaded.warnings == [])
    }
    try withFile(seal, mode: 0o640) { _, path in
      for key in ["secret_file", "password_file"] {
        let found = faults("\(store)[fleet]\n\(key) = \"\(path)\"")
        let problem = "fleet.\(key): \(path): other users can access the file (mode 0640)"
        #expect(found.map { $0.hasPrefix(problem) } == [true], "\(found)")
      }
    }
  }

  @Test func `secret and password may be systemd credentials`() throws {
    try withFile(seal, mode: 0o440) { directory, _ in
      let text = "\(store)[fleet]\nsecret_credential = \"secret\"\npassword_credential = \"secret\""
      let fleet = try configuration(text, environment: ["CREDENTIALS_DIRECTORY": directory]).fleet
      #expect(fleet.secret == Secret(seal))
      #expect(fleet.password == Secret(seal))
    }
  }

  @Test func `secret and password in the text are accepted with a warning`() throws {
    let text = "\(store)[fleet]\nsecret = \"\(seal)\"\npassword = \"canary\""
    #expect(try configuration(text).fleet.secret == Secret(seal))
    #expect(
      remarks(text) == [
        "fleet.password: everyone who can read this file can read the secret; use password_file instead",
        "fleet.secret: everyone who can read this file can read the secret; use secret_file instead",
      ])
  }

  @Test(arguments: ["secret", "password"]) func `a secret given in two ways is refused`(key: String) {
    let text = "\(store)[fleet]\n\(key)_env = \"X\"\n\(key) = \"\(seal)\""
    #expect(faults(text) == ["fleet.\(key): given by \(key)_env and \(key); expected only one of them"])
  }

  @Test func `a short secret is refused with the command that makes one`() throws {
    for count in [1, 31] {
      try withFile(String(repeating: "x", count: count) + "\n") { _, path in
        #expect(
          faults("\(remoteStore)[fleet]\nsecret_file = \"\(path)\"") == [
            "fleet.secret_file: the secret has the wrong form; expected at least 32 octets: make one with "
              + "`head -c 32 /dev/urandom | base64`"
          ])
        // The secret is given, if not well: that it is missing would be one message too many.
        #expect(remarks("\(remoteStore)[fleet]\nsecret_file = \"\(path)\"") == [])
      }
    }
  }

  // MARK: the URL of the store

  @Test func `user and password of the URL are those of the section`() throws {
    let fleet = try configuration("cache.redis = \"redis://user:pass%20word@127.0.0.1\"").fleet
    #expect(fleet.user == "user")
    #expect(fleet.password == Secret("pass word"))
  }

  @Test func `a password in the URL causes a warning that names password_file`() {
    #expect(
      remarks("cache.redis = \"redis://:canary@127.0.0.1\"") == [
        "cache.redis: everyone who can read this file can read the password; use fleet.password_file instead"
      ])
    #expect(remarks("cache.redis = \"redis://user@127.0.0.1\"") == [])
  }

  @Test(arguments: [("password", "password"), ("password_env", "X")])
  func `a password both in the URL and in the section is refused`(key: String, value: String) {
    let text = "cache.redis = \"redis://:canary@127.0.0.1\"\n[fleet]\n\(key) = \"\(value)\""
    #expect(
      faults(text, environment: ["X": "password"]) == [
        "fleet.\(key): cache.redis has a password too; remove \(key)"
      ])
  }

  @Test func `another user in the URL is refused, the same one is not`() throws {
    let text = "cache.redis = \"redis://one@127.0.0.1\"\n[fleet]\nuser = "
    #expect(faults(text + "\"two\"") == ["fleet.user: cache.redis has another user; remove one of them"])
    #expect(try configuration(text + "\"one\"").fleet.user == "one")
    #expect(try configuration(text + "\"\"").fleet.user == "one")
  }

  @Test(arguments: [
    "user = \"x\"", "site = \"x\"", "namespace = \"x\"", "secret_env = \"X\"", "password_env = \"X\"", "units = false",
    "bootstrap = [\"192.0.2.1\"]", "tls_name = \"x\"", "timeout = \"1ms\"",
  ])
  func `keys without a store cause one warning`(line: String) {
    let text = "[fleet]\n\(line)"
    #expect(remarks(text, environment: ["X": seal]) == ["fleet: has no effect without cache.redis"])
    #expect(mistakes(text, environment: ["X": seal]) == [])
  }

  @Test(arguments: [
    "[fleet]", "[fleet]\nunits = true\ntimeout = \"20ms\"\nnamespace = \"httpdnsd\"",
    "cache.redis = \"x\"\nfleet.site = \"x\"",
  ])
  func `defaults without a store, and keys beside a URL with a mistake, cause no warning`(text: String) {
    #expect(remarks(text) == [])
  }

  @Test func `a store that others can reach causes one warning if nothing is sealed`() {
    let warning = "cache.redis: without fleet.secret_file an attacker with write access to the store can forge answers"
    for url in [
      "redis://10.0.0.1", "rediss://10.0.0.1", "redis://[2001:db8::1]", "redis://store", "redis://localhost.example",
    ] {
      #expect(remarks("cache.redis = \"\(url)\"") == [warning])
      #expect(remarks("cache.redis = \"\(url)\"\nfleet.secret_env = \"X\"", environment: ["X": seal]) == [])
    }
  }

  @Test func `keys for TLS without TLS cause a warning`() throws {
    try withFile("-----BEGIN CERTIFICATE-----\n") { _, path in
      let keys = "\n[fleet]\ntls_name = \"store\"\nca_file = \"\(path)\""
      for url in ["redis://127.0.0.1", "unix:///s"] {
        #expect(
          remarks("cache.redis = \"\(url)\"" + keys) == [
            "fleet.ca_file: has no effect without rediss:// in cache.redis",
            "fleet.tls_name: has no effect without rediss:// in cache.redis",
          ])
      }
      #expect(remarks("cache.redis = \"rediss://127.0.0.1\"" + keys) == [])
    }
  }

  @Test func `a store without a cache causes a warning`() {
    #expect(
      remarks("\(store)cache.enabled = false") == ["cache.redis: has no effect with enabled = false"])
  }

  @Test func `a name that nothing can resolve names the ways out`() {
    let text = "cache.redis = \"redis://store\"\nlocaldns.servers = []\n"
    #expect(
      faults(text) == [
        "cache.redis: the URL's host is a name and nothing can resolve it; use an address in the URL, or set "
          + "fleet.bootstrap or localdns.servers"
      ])
    #expect(faults(text + "fleet.bootstrap = [\"192.0.2.1\"]") == [])
    #expect(faults("\(store)localdns.servers = []") == [])
  }

  @Test(arguments: ["redis://127.0.0.1", "unix:///s"])
  func `resolvers for a store without a name cause a warning`(url: String) {
    #expect(
      remarks("cache.redis = \"\(url)\"\nfleet.bootstrap = [\"192.0.2.1\"]") == [
        "fleet.bootstrap: not used: cache.redis has no name to look up"
      ])
  }
}
