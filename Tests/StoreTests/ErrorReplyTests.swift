// ErrorReplyTests.swift -- what a store client does about each error that a store replies with.

import Ciphers
import EventLoop
import TestSupport
import Testing

@testable import Store

@Suite struct `Error replies` {
  @Test(arguments: ["OOM command not allowed", "MISCONF Redis is configured to save", "READONLY You can't write"])
  func `after an error of writes they rest a minute, and reads go on`(error: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      #expect(scene.client.mayWrite)
      store.script = { $0[0] == "SET" ? .error(error) : ScriptedStore.usual($0) }
      #expect(await scene.client.tell("SET", "k", "v") == .failure(.error(error)))
      #expect(await scene.client.tell("SET", "k", "v") == .failure(.error(error)))
      #expect(scene.client.isUp && !scene.client.mayWrite)
      #expect(scene.client.report.state == "up, without writes")
      #expect(await scene.client.ask("GET", "k") == .success(bulk("k")))
      #expect(scene.events.count == 2, "\(scene.events)")
      #expect(scene.client.report.errors == 2)
      // What removes something succeeds also then, and so may what was sent before.
      #expect(await scene.client.tell("DEL", "k") == .success(.integer(1)))
      store.script = ScriptedStore.usual
      #expect(await scene.client.tell("SET", "k", "v") == .success(.status("OK")))
      #expect(scene.client.report.complaint == error && !scene.client.mayWrite)
    }
  }

  @Test(arguments: ["SET", "INCRBY"], ["OOM command not allowed", "NOPERM no permission"])
  func `what the store does not take is shown until it takes it`(command: String, error: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      scene.client.refusalPause = .zero
      try await scene.up(loop)
      store.script = { $0[0] == command ? .error(error) : ScriptedStore.usual($0) }
      #expect(await scene.client.tell(command, "k", "1") == .failure(.error(error)))
      #expect(await scene.client.ask("GET", "k") == .success(bulk("k")))
      #expect(scene.client.report.complaint == error)
      let missing = error.hasPrefix("OOM") ? "writes" : command
      #expect(scene.client.report.state == "up, without \(missing)")
      store.script = ScriptedStore.usual
      guard case .success = await scene.client.tell(command, "k", "1") else {
        Issue.record("not sent")
        return
      }
      #expect(scene.client.report.state == "up" && scene.client.report.complaint == nil)
      #expect(scene.events.map(\.level) == [.info, error.hasPrefix("OOM") ? .warning : .error, .info])
      #expect(
        scene.events.last?.text.hasSuffix("\(missing) \(missing == "writes" ? "are" : "is") accepted again") == true)
    }
  }

  @Test func `a repaired store is used at once after a retry`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      scene.client.retry()
      await loop.turn()
      #expect(store.accepted == 0, "it was not started")
      try await scene.up(loop)
      let errors = ["SET": "OOM command not allowed", "INCRBY": "NOPERM no permission"]
      store.script = { words in errors[words[0]].map { .error($0) } ?? ScriptedStore.usual(words) }
      for command in errors.keys { _ = await scene.client.tell(command, "k", "1") }
      #expect(!scene.client.mayWrite)
      scene.client.retry()
      #expect(scene.client.mayWrite && scene.client.report.complaint != nil)
      store.script = ScriptedStore.usual
      #expect(await scene.client.tell("INCRBY", "n", "1") == .success(.integer(1)))
      #expect(await scene.client.tell("SET", "k", "v") == .success(.status("OK")))
      #expect(scene.client.report.complaint == nil)
      // The user is refused, which causes a pause of a minute.
      store.script = { _ in .error("WRONGPASS no") }
      store.closeConnections()
      #expect(await loop.until { !scene.client.isUp })
      scene.client.retry()
      #expect(await loop.until { scene.client.report.lastFailure == "PING was refused: WRONGPASS no" })
      store.script = ScriptedStore.usual
      scene.client.retry()
      #expect(await loop.until { scene.client.isUp })
    }
  }

  @Test func `another connection may be to another store, which takes everything`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let errors = ["SET": "OOM command not allowed", "INCRBY": "NOPERM no permission"]
      store.script = { words in errors[words[0]].map { .error($0) } ?? ScriptedStore.usual(words) }
      for command in errors.keys { _ = await scene.client.tell(command, "k", "1") }
      #expect(scene.client.report.complaint != nil && !scene.client.mayWrite)
      store.stop()
      #expect(await loop.until { !scene.client.isUp })
      store.script = ScriptedStore.usual
      store.resume()
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
      #expect(scene.client.report.complaint == nil && scene.client.mayWrite)
      #expect(await scene.client.tell("INCRBY", "n", "1") == .success(.integer(1)))
    }
  }

  @Test func `a store that answers MISCONF to PING is used for reads`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      store.script = { $0[0] == "PING" ? .error("MISCONF no disk") : ScriptedStore.usual($0) }
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      #expect(!scene.client.mayWrite)
      #expect(await scene.client.ask("GET", "k") == .success(bulk("k")))
    }
  }

  @Test(arguments: ["LOADING Redis is loading", "MASTERDOWN Link with MASTER is down", "MOVED 3999 127.0.0.1:6381"])
  func `an error that concerns every command opens the breaker`(error: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { _ in .error(error) }
      #expect(await scene.client.ask("GET", "k") == .failure(.error(error)))
      #expect(!scene.client.isUp)
      let line = try #require(scene.events.last)
      #expect(line.level == .warning)
      #expect(line.text.contains("Redis Cluster is not supported") == error.hasPrefix("MOVED"))
      loop.skip(.seconds(2))
      #expect(await loop.until { store.commands.last == ["PING"] })
      await loop.turn()
      #expect(!scene.client.isUp)
      store.script = ScriptedStore.usual
      loop.skip(.seconds(40))
      // Without a call since then, the next call begins the next attempt.
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      #expect(await loop.until { scene.client.isUp })
      #expect(store.accepted == 1)
    }
  }

  @Test(arguments: [
    "NOAUTH Authentication required", "WRONGPASS invalid username-password pair", "NOPERM no permission",
    "ERR DB index is out of range",
  ]) func `a user that is refused is one error line, and is tried again after a minute`(error: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      store.script = { $0[0] == "AUTH" ? .error(error) : ScriptedStore.usual($0) }
      var settings = store.settings
      settings.fleet.password = Secret("wrong")
      let scene = ClientScene(settings, on: loop)
      scene.client.start()
      #expect(await loop.until { scene.events.count == 1 })
      #expect(scene.events[0].level == .error)
      #expect(scene.events[0].text.contains("AUTH was refused: \(error)"))
      #expect(!scene.events[0].text.contains("wrong"))
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      store.script = ScriptedStore.usual
      loop.skip(.seconds(59))
      await loop.turn()
      #expect(!scene.client.isUp && store.accepted == 1)
      loop.skip(.seconds(61))
      #expect(await loop.until { scene.client.isUp })
    }
  }

  @Test func `a command that is not permitted is paused, and no other`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let error = "NOPERM this user has no permissions to run the 'incrby' command"
      store.script = { $0[0] == "INCRBY" ? .error(error) : ScriptedStore.usual($0) }
      for _ in 0..<3 { #expect(await scene.client.tell("INCRBY", "n", "1") == .failure(.error(error))) }
      #expect(store.commands.filter { $0[0] == "INCRBY" }.count == 1)
      #expect(await scene.client.ask("GET", "k") == .success(bulk("k")))
      #expect(scene.events.filter { $0.level == .error }.count == 1)
      #expect(scene.client.report.state == "up, without INCRBY" && scene.client.report.complaint == error)
    }
  }

  @Test func `a success that was sent before the refusal does not end the rest`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      var answers = ["NOPERM no", nil].makeIterator()
      store.script = { words in
        guard words[0] == "GET", let answer = answers.next() else { return ScriptedStore.usual(words) }
        return answer.map { .error($0) } ?? .null
      }
      scene.client.post(words("GET", "n"), nil)
      #expect(await scene.client.tell("GET", "k") == .success(.null))
      #expect(scene.client.report.state == "up, without GET")
      #expect(await scene.client.ask("GET", "k") == .failure(.error("NOPERM no")))
      #expect(scene.events.map(\.level) == [.info, .error])
    }
  }

  @Test func `a connection that needs authentication again is closed`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { $0[0] == "GET" ? .error("NOAUTH Authentication required.") : ScriptedStore.usual($0) }
      #expect(await scene.client.ask("GET", "k") == .failure(.error("NOAUTH Authentication required.")))
      #expect(!scene.client.isUp)
      #expect(scene.events.last?.level == .error)
      #expect(await loop.until { store.connectionCount == 0 })
    }
  }

  @Test func `an error of one command changes nothing`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop)
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      store.script = { $0[0] == "SET" ? .error("WRONGTYPE Operation against a key") : ScriptedStore.usual($0) }
      #expect(await scene.client.tell("SET", "k", "v") == .failure(.error("WRONGTYPE Operation against a key")))
      #expect(scene.client.isUp && scene.client.mayWrite && scene.events.count == 1)
    }
  }

  @Test func `a store without places for clients is tried again after a second`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { _ in .error("ERR max number of clients reached") }
      let scene = ClientScene(store.settings, on: loop)
      scene.client.start()
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      #expect(await loop.until { scene.events.count == 1 })
      #expect(scene.events.first?.level == .warning)
      #expect(await scene.client.ask("GET", "k") == .failure(.open))
      store.script = ScriptedStore.usual
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.client.isUp })
    }
  }
}
