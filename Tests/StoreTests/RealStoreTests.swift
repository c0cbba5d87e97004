// RealStoreTests.swift -- the client against real servers, Redis and Valkey.

import Ciphers
import EventLoop
import Glibc
import Store
import TLSTestSupport
import TestSupport
import Testing

@Suite struct `A real store` {
  // A case without its server does not exist, and would not be reported.
  @Test(.enabled(if: StoreServer.absence.isEmpty, "\(StoreServer.absence)"))
  func `the tests of real stores run with Redis and with Valkey`() {
    #expect(StoreServer.installed == [.redis, .valkey])
  }

  @Test(arguments: StoreServer.installed)
  func `values of any octets come back`(server: StoreServer) throws {
    let store = try RealStore(server)
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let value = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      var results: [StoreResult] = []
      // More than the kernel takes at once.
      for number in 0..<40 {
        scene.client.post([Array("SET".utf8), Array("k\(number)".utf8), value]) { results.append($0) }
      }
      #expect(await loop.until { results.count == 40 })
      #expect(results.allSatisfy { $0 == .success(.status("OK")) })
      #expect(await scene.client.ask("GET", "k0") == .success(.bulk(value)))
      #expect(await scene.client.ask("SET", "k0", "x", "NX", "PX", "1000") == .success(.null))
      #expect(await scene.client.ask("INCRBY", "n", "7") == .success(.integer(7)))
      guard case .success(.array(let time)) = await scene.client.ask("TIME") else {
        Issue.record("no time")
        return
      }
      #expect(time.count == 2)
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a value that is too large closes the connection`(server: StoreServer) throws {
    let store = try RealStore(server)
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      #expect(await scene.client.tell("SET", "k", String(repeating: "x", count: 65_537)) == .success(.status("OK")))
      #expect(await scene.client.ask("GET", "k") == .failure(.closed))
      #expect(scene.client.report.lastFailure == "reply not understood: a reply is too large")
    }
  }

  @Test(arguments: StoreServer.installed)
  func `databases are apart`(server: StoreServer) throws {
    let store = try RealStore(server)
    try onLoop { loop in
      var settings = store.settings
      settings.database = 5
      let (zero, five) = (ClientScene(store.settings, on: loop), ClientScene(settings, on: loop))
      try await zero.up(loop)
      try await five.up(loop)
      #expect(await five.client.ask("SET", "k", "v") == .success(.status("OK")))
      #expect(await five.client.ask("GET", "k") == .success(bulk("v")))
      #expect(await zero.client.ask("GET", "k") == .success(.null))
      settings.database = 99
      let none = ClientScene(settings, on: loop)
      none.client.start()
      #expect(await loop.until { none.events.count == 1 })
      #expect(none.events.first?.text.contains("SELECT was refused: ERR DB index is out of range") == true)
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a user of the access list is accepted, and refused with a wrong password or without any`(server: StoreServer)
    throws
  {
    let rights =
      "+get +set +del +incrby +expire +xadd +xread +zadd +zrange +zremrangebyscore +select +time +ping +auth +role"
    let store = try RealStore(server, ["user default off", "user httpdnsd on >right ~httpdnsd:* \(rights)"])
    try onLoop { loop in
      var settings = store.settings
      settings.fleet.user = "httpdnsd"
      settings.fleet.password = Secret("right")
      let scene = ClientScene(settings, on: loop)
      try await scene.up(loop)
      #expect(await scene.client.ask("SET", "httpdnsd:1:k", "v") == .success(.status("OK")))
      for command in [["GET", "other"], ["CONFIG", "GET", "*"]] {
        var result: StoreResult?
        scene.client.post(command.map { Array($0.utf8) }) { result = $0 }
        #expect(await loop.until { result != nil })
        guard case .failure(.error(let error)) = result else {
          Issue.record("\(command): \(String(describing: result))")
          return
        }
        #expect(error.hasPrefix("NOPERM"))
      }
      #expect(scene.client.isUp)
      settings.fleet.password = Secret("wrong")
      let wrong = ClientScene(settings, on: loop)
      wrong.client.start()
      let without = ClientScene(store.settings, on: loop)
      without.client.start()
      #expect(await loop.until { wrong.events.count == 1 && without.events.count == 1 })
      #expect(wrong.events[0].text.contains("AUTH was refused: WRONGPASS") && wrong.events[0].level == .error)
      #expect(without.events[0].text.contains("PING was refused: NOAUTH") && without.events[0].level == .error)
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a store that stops is left within three timeouts, and used again when it continues`(server: StoreServer) throws
  {
    let store = try RealStore(server)
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      for name in ["a", "b", "c", "d"] { _ = await scene.client.ask("SET", name, "value of \(name)") }
      store.signal(SIGSTOP)
      // The signal may come after the first replies.
      #expect(
        await loop.until { await scene.client.ask("GET", "a", timeout: .milliseconds(20)) == .failure(.open) })
      #expect(scene.client.report.timeouts == 3)
      store.signal(SIGCONT)
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
      #expect(await scene.client.ask("GET", "d") == .success(bulk("value of d")))
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a store that was killed is used again when it is back`(server: StoreServer) throws {
    try onLoop { loop in
      var first: RealStore? = try RealStore(server)
      let (settings, folder) = (first!.settings, first!.folder)
      let scene = ClientScene(settings, on: loop)
      try await scene.up(loop)
      first?.signal(SIGKILL)
      #expect(await loop.until { !scene.client.isUp })
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      first = nil
      let second = try RealStore(server, in: folder)
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
      #expect(await scene.client.ask("GET", "k") == .success(.null))
      _ = second
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a store without memory takes no writes, and gives what it has`(server: StoreServer) throws {
    let store = try RealStore(server, ["maxmemory 2mb", "maxmemory-policy noeviction"])
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      #expect(await scene.client.tell("SET", "k", "v") == .success(.status("OK")))
      let value = String(repeating: "x", count: 60_000)
      var last: StoreResult = .success(.null)
      for number in 0..<100 where scene.client.mayWrite { last = await scene.client.tell("SET", "k\(number)", value) }
      guard case .failure(.error(let error)) = last else {
        Issue.record("\(last)")
        return
      }
      #expect(error.hasPrefix("OOM") && scene.client.isUp && !scene.client.mayWrite)
      #expect(await scene.client.ask("GET", "k") == .success(bulk("v")))
    }
  }

  @Test(arguments: StoreServer.installed, [false, true])
  func `a replica without its master gives what it has or nothing`(server: StoreServer, isStale: Bool) throws {
    let store = try RealStore(server, ["replicaof 127.0.0.1 1", "replica-serve-stale-data \(isStale ? "yes" : "no")"])
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      scene.client.start()
      guard isStale else {
        #expect(await loop.until { scene.client.report.lastFailure?.contains("MASTERDOWN") == true })
        #expect(!scene.client.isUp)
        return
      }
      #expect(await loop.until { scene.client.isUp })
      guard case .failure(.error(let error)) = await scene.client.tell("SET", "k", "v") else {
        Issue.record("no error")
        return
      }
      #expect(error.hasPrefix("READONLY") && !scene.client.mayWrite)
      #expect(await scene.client.ask("GET", "k") == .success(.null))
    }
  }
}

@Suite struct `A real store with TLS` {
  private let folder = TemporaryFolder()

  private func store(_ server: StoreServer, _ certificate: String) throws -> (RealStore, UInt16) {
    let port = ReservedPort()
    let store = try RealStore(
      server,
      [
        "tls-port \(port.number)", "tls-auth-clients no", "tls-cert-file \(folder.path)/\(certificate).pem",
        "tls-key-file \(folder.path)/\(certificate).key", "tls-ca-cert-file \(folder.path)/ca.pem", "bind 127.0.0.1",
      ], port: port)
    return (store, port.number)
  }

  private func settings(_ port: UInt16, name: String, authority: String) -> StoreSettings {
    var settings = StoreSettings(at: .tcp(host: "127.0.0.1", port: port))
    settings.fleet.timeout = .seconds(5)
    settings.fleet.connectTimeout = .seconds(10)
    (settings.tlsName, settings.fleet.caFile) = (name, authority)
    return settings
  }

  @Test(arguments: StoreServer.installed, ["store.test", "127.0.0.1", "a.wild.test"])
  func `a certificate of the expected name is accepted`(server: StoreServer, name: String) throws {
    let certificates = try TestCertificates(in: folder)
    try certificates.make("right", for: "DNS:store.test,IP:127.0.0.1,DNS:*.wild.test")
    let (store, port) = try store(server, "right")
    let settings = settings(port, name: name, authority: certificates.authority)
    try onLoop { loop in
      let scene = ClientScene(settings, on: loop)
      try await scene.up(loop)
      let value = String(repeating: "0123456789abcdef", count: 4096)
      var results: [StoreResult] = []
      for number in 0..<30 { scene.client.post(words("SET", "k\(number)", value)) { results.append($0) } }
      #expect(await loop.until { results.count == 30 })
      var values: [StoreResult] = []
      for _ in 0..<30 { scene.client.call(words("GET", "k0"), timeout: .seconds(20)) { values.append($0) } }
      #expect(await loop.until { values.count == 30 })
      #expect(values.allSatisfy { $0 == .success(bulk(value)) })
      scene.client.close()
    }
    _ = store
  }

  @Test(arguments: StoreServer.installed)
  func `a certificate of another name, that has expired, or of a stranger is refused`(server: StoreServer) throws {
    let certificates = try TestCertificates(in: folder)
    try certificates.make("right", for: "DNS:store.test")
    try certificates.make("expired", for: "DNS:store.test", until: 2021)
    let (right, port) = try store(server, "right")
    let (expired, expiredPort) = try store(server, "expired")
    let cases: [(UInt16, name: String, authority: String, reason: String)] = [
      (port, "other.test", certificates.authority, "the certificate is not for 'other.test'"),
      (port, "127.0.0.1", certificates.authority, "the certificate is not for '127.0.0.1'"),
      (port, "store.test", "", "the certificate's issuer is not trusted ("),
      (expiredPort, "store.test", certificates.authority, "the certificate is not accepted: certificate has expired"),
      (port, "", certificates.authority, "'' is not a valid host name or IP address"),
      (port, "store.test", folder.path(of: "nothing.pem"), "nothing.pem: unreadable, or contains no PEM certificate"),
    ]
    for (port, name, authority, reason) in cases {
      let settings = settings(port, name: name, authority: authority)
      try onLoop { loop in
        let scene = ClientScene(settings, on: loop)
        scene.client.start()
        #expect(await loop.until { scene.client.report.lastFailure != nil })
        #expect(scene.client.report.lastFailure?.contains(reason) == true, "\(scene.client.report)")
        #expect(scene.client.report.lastFailure?.hasPrefix("TLS failed: ") == true)
      }
    }
    _ = (right, expired)
  }

  @Test func `a store that speaks no TLS is refused`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var settings = store.settings
      settings.tlsName = "store.test"
      let scene = ClientScene(settings, on: loop)
      scene.client.start()
      // It waits for the rest of what it takes for a command.
      #expect(await loop.until { store.accepted == 1 })
      await loop.turn()
      store.send("-ERR Protocol error\r\n")
      #expect(await loop.until { scene.client.report.lastFailure?.hasPrefix("TLS failed: ") == true })
    }
  }
}
