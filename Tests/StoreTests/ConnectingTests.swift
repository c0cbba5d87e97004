// ConnectingTests.swift -- what can go wrong before the first reply.

import Ciphers
import EventLoop
import Glibc
import Store
import TestSupport
import Testing

@Suite struct `Connecting to a store` {
  @Test func `a store that accepts and says nothing is given up in time, and not used`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { _ in .nothing }
      let scene = ClientScene(store.settings, on: loop)
      scene.client.start()
      #expect(await loop.until { store.commands == [["PING"]] })
      #expect(scene.client.report.state == "connecting")
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      loop.skip(.seconds(10))
      #expect(scene.client.report.lastFailure == "connected, but no reply in time")
      #expect(await loop.until { store.connectionCount == 0 })
    }
  }

  @Test func `an address that accepts and says nothing is tried after the others`() throws {
    try onLoop { loop in
      let silent = try ScriptedStore(on: loop) { _ in .nothing }
      let store = try ScriptedStore(on: loop, host: [127, 0, 0, 2], port: silent.port)
      var settings = silent.settings
      settings.address = .tcp(host: "store.test", port: silent.port)
      let scene = ClientScene(settings, on: loop) { _ in
        [[127, 0, 0, 1], [127, 0, 0, 2]].map { SocketAddress(octets: $0, port: 0)! }
      }
      scene.client.start()
      #expect(await loop.until { silent.commands == [["PING"]] })
      loop.skip(.seconds(10))
      #expect(await loop.until { silent.connectionCount == 0 })
      // A store that is not used is tried again at the next call.
      func isUp(_ times: Int) async -> Bool {
        await loop.until(every: .milliseconds(20)) {
          _ = await scene.client.ask("GET", "k")
          return scene.ups == times
        }
      }
      #expect(await isUp(1))
      #expect(store.accepted == 1 && silent.accepted == 1)
      // Also later.
      store.closeConnections()
      #expect(await isUp(2))
      #expect(store.accepted == 2 && silent.accepted == 1)
      scene.client.close()
    }
  }

  @Test func `a name that is not resolved in time is a failure, and late addresses are not used`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var settings = store.settings
      settings.address = .tcp(host: "store.test", port: store.port)
      let waiting = Waiting()
      let scene = ClientScene(settings, on: loop) { _ in
        await withCheckedContinuation { waiting.continuation = $0 }
        return [SocketAddress(text: "127.0.0.1:1")!]
      }
      scene.client.start()
      #expect(await loop.until { waiting.continuation != nil })
      loop.skip(.seconds(10))
      #expect(scene.client.report.lastFailure == "cannot connect: its host name was not resolved in time")
      waiting.continuation?.resume()
      for _ in 0..<5 { await loop.turn() }
      #expect(store.accepted == 0)
    }
  }

  @Test func `a client that is released while its host is resolved leaves nothing behind`() throws {
    try onLoop { loop in
      let timers = loop.timers.count
      let waiting = Waiting()
      var scene: ClientScene? = ClientScene(StoreSettings(at: .tcp(host: "store.test", port: 1)), on: loop) { _ in
        await withCheckedContinuation { waiting.continuation = $0 }
        return [SocketAddress(text: "127.0.0.1:1")!]
      }
      scene?.client.start()
      #expect(await loop.until { waiting.continuation != nil })
      weak let client = scene?.client
      scene = nil
      #expect(client == nil && loop.timers.count == timers)
      waiting.continuation?.resume()
      await loop.turn()
    }
  }

  @Test(arguments: ["/nowhere/socket", "", String(repeating: "x", count: 108)])
  func `a path without a socket is a failure`(
    path: String
  ) throws {
    try onLoop { loop in
      let scene = ClientScene(StoreSettings(at: .socket(path: path)), on: loop)
      scene.client.start()
      #expect(await loop.until { scene.client.report.lastFailure != nil })
      let isShort = path.hasPrefix("/")
      #expect(
        scene.client.report.lastFailure
          == "cannot connect: \(isShort ? "no such file or directory" : "invalid path of a Unix socket")")
      #expect(scene.events.count == 1)
    }
  }

  @Test func `a password without a user is sent alone, and a user without a password with an empty one`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      var settings = store.settings
      settings.fleet.password = Secret("p")
      let first = ClientScene(settings, on: loop)
      try await first.up(loop)
      settings.fleet.password = Secret("")
      settings.fleet.user = "u"
      let second = ClientScene(settings, on: loop)
      try await second.up(loop)
      #expect(store.commands == [["AUTH", "p"], ["PING"], ["AUTH", "u", ""], ["PING"]])
    }
  }

  @Test func `a connection is kept alive, and is given up when octets are not acknowledged`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let descriptor = try #require(
        (0..<4096).first {
          SocketAddress(peerOf: $0)?.port == store.port && SocketAddress(boundTo: $0)?.port != store.port
        })
      func option(_ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, level, name, &value, &length)
        return value
      }
      let tcp = Int32(IPPROTO_TCP)
      #expect(option(SOL_SOCKET, SO_KEEPALIVE) == 1 && option(tcp, TCP_NODELAY) == 1)
      #expect(option(tcp, TCP_KEEPIDLE) == 30 && option(tcp, TCP_KEEPINTVL) == 10)
      #expect(option(tcp, TCP_USER_TIMEOUT) == 30_000)
      #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }
  }

  @Test func `a store whose PING is late is asked again, and used when it answers in time`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { _ in .nothing }
      var settings = store.settings
      settings.fleet.timeout = .zero
      let scene = ClientScene(settings, on: loop)
      scene.client.start()
      #expect(await loop.until { store.commands.count == 1 })
      store.send("+PONG\r\n")
      // No reply can be in time.
      #expect(await loop.until { scene.client.report.lastFailure == "no reply to PING within 0 ms" })
      #expect(store.accepted == 1 && !scene.client.isUp && scene.ups == 0)
    }
  }

  @Test func `a late reply is dropped, and the next one is its own command's`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { _ in .nothing }
      #expect(await scene.client.ask("GET", "a", timeout: .milliseconds(1)) == .failure(.timeout))
      var result: StoreResult?
      scene.client.call(words("GET", "b"), timeout: .seconds(20)) { result = $0 }
      #expect(await loop.until { store.commands.last == ["GET", "b"] })
      store.send("$1\r\na\r\n")
      await loop.turn()
      #expect(result == nil)
      store.send("$1\r\nb\r\n")
      #expect(await loop.until { result != nil })
      #expect(result == .success(bulk("b")))
      #expect(scene.client.isUp)
    }
  }
}

/// Where a resolver waits.
private final class Waiting: @unchecked Sendable {
  var continuation: CheckedContinuation<Void, Never>?
}
