// ClientTests.swift -- the link to a store: calls, timeouts, the breaker, and what error replies do.

import Ciphers
import EventLoop
import Store
import TestSupport
import Testing

@Suite struct `A store client` {
  @Test func `a store client gets replies in order`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      #expect(scene.ups == 1)
      var results: [StoreResult] = []
      for number in 0..<100 {
        scene.client.call(words("GET", "k\(number)"), timeout: .seconds(20)) { results.append($0) }
      }
      #expect(results.isEmpty, "a result during the call")
      #expect(await loop.until { results.count == 100 })
      #expect(results == (0..<100).map { .success(bulk("k\($0)")) })
      #expect(await scene.client.ask("GET", "missing") == .success(.null))
      #expect(await scene.client.tell("INCRBY", "n", "1") == .success(.integer(1)))
      scene.client.post(words("SET", "a", "b"), nil)
      #expect(await loop.until { store.commands.last == ["SET", "a", "b"] })
      #expect(scene.client.report.latency != nil)
      #expect(scene.client.report.calls == 103)
    }
  }

  @Test func `a store client that was not started does not connect, whatever is called`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      scene.client.requestUse()
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      loop.skip(.seconds(700))
      await loop.turn()
      #expect(store.accepted == 0 && scene.client.report.state == "not connected yet")
      try await scene.up(loop)
      #expect(await scene.client.ask("GET", "k") == .success(bulk("k")))
    }
  }

  @Test func `a store client sends user, database and PING before anything else`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var settings = store.settings
      settings.fleet.user = "httpdnsd"
      settings.fleet.password = Secret("canary")
      settings.database = 3
      let scene = ClientScene(settings, on: loop)
      try await scene.up(loop)
      #expect(store.commands == [["AUTH", "httpdnsd", "canary"], ["SELECT", "3"], ["PING"]])
      #expect(!"\(settings) \(settings.fleet.password!)".contains("canary"))
      var dumped = ""
      dump(settings, to: &dumped)
      #expect(!dumped.contains("canary"))
    }
  }

  @Test func `three timeouts open the breaker, all callers fail then, and a PING closes it`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { _ in .nothing }
      var results: [StoreResult] = []
      for _ in 0..<3 { scene.client.call(words("GET", "a"), timeout: .milliseconds(1)) { results.append($0) } }
      scene.client.call(words("GET", "b"), timeout: .seconds(20)) { results.append($0) }
      #expect(await loop.until { results.count == 4 })
      #expect(results.filter { $0 == .failure(.timeout) }.count == 3)
      #expect(results.filter { $0 == .failure(.open) }.count == 1)
      #expect(!scene.client.isUp)
      #expect(await scene.client.ask("GET", "c") == .failure(.open))
      #expect(scene.events.count == 2 && scene.events[1].level == .warning)
      // The late replies are dropped, and the next one is its own command's.
      store.script = ScriptedStore.usual
      store.send("$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\nb\r\n")
      await loop.turn()
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
      #expect(await scene.client.ask("GET", "d") == .success(bulk("d")))
      #expect(store.accepted == 1, "the connection lived")
      #expect(scene.ups == 2)
      #expect(scene.client.report.timeouts == 3)
    }
  }

  @Test func `a connection that answers no PING three times is replaced`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { _ in .nothing }
      for _ in 0..<3 { _ = await scene.client.ask("GET", "a", timeout: .milliseconds(1)) }
      #expect(!scene.client.isUp)
      #expect(
        await loop.until {
          loop.skip(.seconds(700))
          await loop.turn()
          return store.accepted == 2
        })
      #expect(store.commands.filter { $0 == ["PING"] }.count >= 4)
      #expect(!scene.client.isUp)
    }
  }

  @Test func `256 commands without a reply are the most, and more count as timeouts`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { _ in .nothing }
      var results: [StoreResult] = []
      for _ in 0..<256 { scene.client.post(words("GET", "a")) { results.append($0) } }
      await loop.turn()
      #expect(results.isEmpty && scene.client.isUp)
      for _ in 0..<3 { scene.client.call(words("GET", "b"), timeout: .seconds(20)) { results.append($0) } }
      #expect(results.isEmpty, "a result during the call")
      #expect(await loop.until { !scene.client.isUp })
      #expect(results == Array(repeating: .failure(.tooManyWaiting), count: 3))
      // A posted command has no timeout: it gets its reply when that comes, or fails when the connection ends.
      store.send(String(repeating: "$1\r\na\r\n", count: 100))
      #expect(await loop.until { results.count == 103 })
      scene.client.close()
      #expect(results.filter { $0 == .success(bulk("a")) }.count == 100)
      #expect(results.filter { $0 == .failure(.closed) }.count == 156)
    }
  }

  @Test func `a lost connection fails its callers and is made again`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { $0[0] == "PING" ? .pong : .close }
      #expect(await scene.client.ask("GET", "a") == .failure(.closed))
      #expect(!scene.client.isUp)
      #expect(await scene.client.ask("GET", "a") == .failure(.open))
      store.script = ScriptedStore.usual
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
      #expect(store.accepted == 2)
    }
  }

  @Test func `a client without a store tries again while it is wanted, and else after ten minutes`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      store.stop()
      let scene = ClientScene(store.settings, on: loop)
      scene.client.start()
      #expect(await loop.until { scene.client.report.lastFailure != nil })
      #expect(scene.client.report.lastFailure == "cannot connect: connection refused")
      #expect(scene.events.count == 1)
      store.resume()
      // The store is not needed: the pause ends without another attempt.
      loop.skip(.seconds(2))
      loop.skip(.seconds(500))
      await loop.turn()
      #expect(store.accepted == 0)
      #expect(await scene.client.tell("INCRBY", "n", "1") == .failure(.open))
      await loop.turn()
      #expect(store.accepted == 0, "a post does not want it")
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      #expect(await loop.until { scene.client.isUp })
      store.stop()
      #expect(await loop.until { !scene.client.isUp })
      // It was in use, so it is tried once, and then after ten minutes.
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.report.lastFailure == "cannot connect: connection refused" })
      store.resume()
      loop.skip(.seconds(40))
      await loop.turn()
      loop.skip(.seconds(600))
      #expect(await loop.until { scene.client.isUp })
    }
  }

  @Test func `a name without an address is a failure, and every address is tried`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var settings = store.settings
      settings.address = .tcp(host: "store.test", port: store.port)
      let none = ClientScene(settings, on: loop)
      none.client.start()
      #expect(await loop.until { none.client.report.lastFailure == "cannot connect: 'store.test' has no address" })
      // On the first address nothing listens.
      let scene = ClientScene(settings, on: loop) { name in
        name.text == "store.test" ? ["127.0.0.7:1", "127.0.0.1:2"].compactMap { SocketAddress(text: $0) } : []
      }
      try await scene.up(loop)
    }
  }

  @Test(arguments: [
    "$5\r\nhel", "?\r\n", "+OK\r\n+OK\r\n", ":1\r\n", "$70000\r\n", "*1\r\n$1\r\na\r\n", "+PONG\r\n", "$01\r\na\r\n",
  ]) func `a reply that is nonsense, too large or another command's closes the connection`(text: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let isHalf = text == "$5\r\nhel"
      store.script = { $0[0] == "PING" ? .pong : .octets(text) }
      var result: StoreResult?
      scene.client.call(words("GET", "a"), timeout: .seconds(20)) { result = $0 }
      #expect(await loop.until { store.commands.last == ["GET", "a"] })
      if isHalf { store.send("lo\rx") }
      #expect(await loop.until { result != nil })
      #expect(result == .failure(.closed))
      #expect(await loop.until { store.connectionCount == 0 })
      #expect(!scene.client.isUp)
      #expect(scene.client.report.lastFailure?.hasPrefix("reply not understood: ") == true)
      store.script = ScriptedStore.usual
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
    }
  }

  @Test func `closing notifies every caller once, and nothing stays with the loop`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let timers = loop.timers.count
      var scene: ClientScene? = ClientScene(store.settings, on: loop)
      try await scene?.up(loop)
      store.script = { _ in .nothing }
      var results: [StoreResult] = []
      for _ in 0..<3 { scene?.client.call(words("GET", "a"), timeout: .seconds(20)) { results.append($0) } }
      scene?.client.post(words("GET", "a")) { results.append($0) }
      scene?.client.close()
      #expect(results == [StoreResult](repeating: .failure(.closed), count: 4))
      #expect(loop.timers.count == timers)
      #expect(await scene?.client.ask("GET", "b") == .failure(.closed))
      weak let client = scene?.client
      scene = nil
      #expect(client == nil)
      await loop.turn()
      #expect(results.count == 4)
    }
  }

  @Test func `a client may be closed in a completion`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      var results: [StoreResult] = []
      for number in 0..<5 {
        scene.client.call(words("GET", "k\(number)"), timeout: .seconds(20)) {
          results.append($0)
          if number == 1 { scene.client.close() }
        }
      }
      #expect(await loop.until { results.count == 5 })
      #expect(results.filter { $0 == .failure(.closed) }.count == 3)
    }
  }

  @Test func `a client may be released in a completion, and in the note of its failure`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var client: StoreClient? = StoreClient(store.settings, on: loop, resolve: { _ in [] }) { _ in }
      client?.start()
      #expect(await loop.until { client?.isUp == true })
      var results: [StoreResult] = []
      for number in 0..<3 {
        client?.call(words("GET", "k\(number)"), timeout: .seconds(20)) {
          results.append($0)
          _ = client.take()
        }
      }
      #expect(await loop.until { results.count == 3 })
      #expect(results == [.success(bulk("k0")), .failure(.closed), .failure(.closed)])
      var release: () -> Void = {}
      var next: StoreClient? = StoreClient(store.settings, on: loop, resolve: { _ in [] }) {
        if $0.level == .warning { release() }
      }
      weak let weakly = next
      release = { _ = next.take() }
      next?.start()
      #expect(await loop.until { next?.isUp == true })
      store.closeConnections()
      #expect(await loop.until { weakly == nil })
      release = {}
    }
  }
}
