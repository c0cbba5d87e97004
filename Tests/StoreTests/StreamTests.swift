// StreamTests.swift -- a connection of its own for a command that blocks.

import EventLoop
import Store
import TestSupport
import Testing

/// A stream, and what came of it.
private final class StreamScene {
  let stream: StoreStream
  private(set) var replies: [RESPValue] = []
  private(set) var events: [StoreEvent] = []
  private(set) var connections = 0
  private(set) var ends = 0
  var last = 0

  init(_ settings: StoreSettings, on loop: EventLoop) {
    var pass: (StoreEvent) -> Void = { _ in }
    stream = StoreStream(settings, on: loop, resolve: { _ in [] }) { pass($0) }
    pass = { [unowned self] in events.append($0) }
    stream.onConnected = { [unowned self] in connections += 1 }
    stream.onEnded = { [unowned self] in ends += 1 }
  }

  deinit { stream.close() }

  func read() {
    stream.read({ [unowned self] in words("XREAD", "BLOCK", "0", "STREAMS", "f", "\(last)") }) { [unowned self] in
      guard $0 != .null else { return false }
      replies.append($0)
      last += 1
      return true
    }
    stream.connect()
  }
}

@Suite struct `A store stream` {
  @Test func `a stream sends the next command after each reply, and has no timer while it waits`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .nothing }
      let timers = loop.timers.count
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.last?.last == "0" })
      #expect(scene.connections == 1 && scene.stream.isConnected)
      store.send("*1\r\n:1\r\n")
      #expect(await loop.until { store.commands.last?.last == "1" })
      store.send("*1\r\n:2\r\n")
      #expect(await loop.until { store.commands.last?.last == "2" })
      #expect(scene.replies == [.array([.integer(1)]), .array([.integer(2)])])
      await loop.turn()
      #expect(loop.timers.count == timers)
      scene.stream.close()
      #expect(await loop.until { store.connectionCount == 0 })
      #expect(scene.events.isEmpty)
    }
  }

  @Test func `a store that always has something is read at a pace`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .octets("*1\r\n:1\r\n") }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { !scene.replies.isEmpty })
      let (begin, count) = (loop.now, scene.replies.count)
      #expect(await loop.until { scene.replies.count >= count + 20 })
      // 5 ms each, but for the first one, which may have been on its way.
      #expect(loop.now - begin >= .milliseconds(19 * 5))
      scene.stream.close()
    }
  }

  @Test func `a stream connects again, and takes up where it was`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .nothing }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.last?.last == "0" })
      store.send("*1\r\n:1\r\n")
      #expect(await loop.until { store.commands.last?.last == "1" })
      store.stop()
      #expect(await loop.until { !scene.stream.isConnected })
      store.resume()
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.connections == 2 })
      #expect(await loop.until { store.commands.filter { $0.last == "1" }.count == 2 })
      #expect(scene.events.isEmpty, "the owner has nothing to do about it")
    }
  }

  @Test func `a stream whose connection ends at each command says so once`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .close }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      for round in 1...6 {
        #expect(await loop.until { scene.ends == round })
        loop.skip(.seconds(60))
      }
      #expect(
        scene.events.count == 1 && scene.events[0].text.contains("connection lost: closed by the store; not used"))
    }
  }

  @Test func `a stream that is paused is tried at once after a retry`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .error("NOPERM no xread") }
      let scene = StreamScene(store.settings, on: loop)
      scene.stream.retry()
      scene.read()
      #expect(await loop.until { scene.events.count == 1 })
      store.script = { $0[0] == "PING" ? .pong : .nothing }
      scene.stream.retry()
      #expect(await loop.until { scene.stream.isConnected && store.accepted == 2 })
      scene.stream.retry()
      await loop.turn()
      #expect(scene.connections == 2, "one that is connected stays so")
    }
  }

  @Test func `a stream that cannot connect again says so, and when it reads again`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .null }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.count == 2 })
      store.stop()
      #expect(await loop.until { !scene.stream.isConnected })
      loop.skip(.seconds(2))
      #expect(await loop.until { scene.events.count == 1 })
      #expect(scene.events[0].level == .warning && scene.events[0].text.contains("refused; not used, next attempt in"))
      store.resume()
      #expect(
        await loop.until {
          loop.skip(.seconds(60))
          await loop.turn()
          return scene.events.count == 2
        })
      #expect(scene.events[1].level == .info && scene.events[1].text.hasSuffix("XREAD succeeds again"))
    }
  }

  @Test(arguments: ["-ERR wrong\r\n", "$-1\r\n", "*-1\r\n", "-LOADING\r\n"])
  func `a stream pauses after an error or nothing, and does not ask at once`(reply: String) throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .octets(reply) }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.count == 2 })
      for _ in 0..<5 { await loop.turn() }
      #expect(store.commands.count == 2 && scene.replies.isEmpty)
      loop.skip(.seconds(2))
      #expect(await loop.until { store.commands.count > 2 })
      // After an error its owner learns that it does not read.
      let isError = reply.hasPrefix("-")
      #expect(await loop.until { store.accepted == (isError ? 2 : 1) })
      #expect((scene.ends > 0) == isError)
    }
  }

  @Test func `a stream that may not read is one error line, and tries again after a minute`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .error("NOPERM no xread") }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { scene.events.count == 1 })
      #expect(scene.events[0].level == .error && scene.events[0].text.contains("XREAD was refused"))
      loop.skip(.seconds(59))
      await loop.turn()
      #expect(store.accepted == 1)
      loop.skip(.seconds(61))
      #expect(await loop.until { store.accepted == 2 })
    }
  }

  @Test func `a stream takes a reply of 1 MiB and refuses more`() throws {
    try onLoop { loop in
      let count = 16
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .nothing }
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.count == 2 })
      let piece = "$65000\r\n\(String(repeating: "x", count: 65_000))\r\n"
      store.send("*\(count)\r\n")
      for _ in 0..<count {
        store.send(piece)
        await loop.turn()
      }
      #expect(await loop.until { scene.replies.count == 1 })
      #expect(await loop.until { store.commands.count == 3 })
      store.send("*\(count + 1)\r\n")
      for _ in 0...count {
        store.send(piece)
        await loop.turn()
      }
      #expect(await loop.until { !scene.stream.isConnected })
      #expect(scene.replies.count == 1)
    }
  }

  @Test func `a stream connects and disconnects when its owner says so`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .nothing }
      let timers = loop.timers.count
      let scene = StreamScene(store.settings, on: loop)
      scene.read()
      #expect(await loop.until { store.commands.last?.last == "0" })
      // The command is asked for again.
      scene.last = 7
      scene.stream.connect()
      #expect(await loop.until { store.commands.last?.last == "7" })
      #expect(scene.connections == 2 && scene.ends == 1)
      scene.stream.disconnect()
      #expect(await loop.until { store.connectionCount == 0 })
      #expect(scene.ends == 2 && !scene.stream.isConnected && loop.timers.count == timers)
      // Nor does one that fails come back by itself then.
      store.stop()
      scene.stream.connect()
      #expect(await loop.until { scene.events.count == 1 })
      scene.stream.disconnect()
      #expect(loop.timers.count == timers)
      store.resume()
      loop.skip(.seconds(120))
      await loop.turn()
      #expect(store.accepted == 2)
    }
  }

  @Test func `a stream may be closed by what it calls`() throws {
    try onLoop { loop in
      let store = try ScriptedStore(on: loop) { $0[0] == "PING" ? .pong : .octets("*0\r\n") }
      var asked = 0
      var stream: StoreStream? = StoreStream(store.settings, on: loop, resolve: { _ in [] }) { _ in }
      stream?.read({
        asked += 1
        return words("XREAD")
      }) { _ in
        stream?.close()
        return true
      }
      stream?.connect()
      #expect(await loop.until { store.commands.count == 2 })
      #expect(await loop.until { store.connectionCount == 0 })
      #expect(asked == 1)
      weak let weakly = stream
      stream = nil
      #expect(weakly == nil)
    }
  }

  @Test(arguments: StoreServer.installed)
  func `a stream reads what others add to a real store`(server: StoreServer) throws {
    let store = try RealStore(server)
    try onLoop { loop in
      let scene = ClientScene(store.settings, on: loop)
      try await scene.up(loop)
      let stream = StoreStream(store.settings, on: loop, resolve: { _ in [] }) { _ in }
      var last = "0-0"
      var seen: [String] = []
      stream.read({ words("XREAD", "BLOCK", "0", "STREAMS", "f", last) }) { reply in
        guard case .array(let streams) = reply, case .array(let pair)? = streams.first,
          case .array(let entries)? = pair.last
        else { return false }
        for case .array(let entry) in entries {
          guard case .bulk(let id)? = entry.first, case .array(let fields)? = entry.last else { return false }
          last = String(decoding: id, as: UTF8.self)
          if case .bulk(let value)? = fields.last { seen.append(String(decoding: value, as: UTF8.self)) }
        }
        return true
      }
      stream.connect()
      #expect(await loop.until { stream.isConnected })
      for number in 0..<20 { scene.client.post(words("XADD", "f", "MAXLEN", "~", "1000", "*", "p", "v\(number)"), nil) }
      #expect(await loop.until { seen.count == 20 })
      #expect(seen == (0..<20).map { "v\($0)" })
      // A stream that was interrupted gets what was added meanwhile.
      _ = await scene.client.tell("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      scene.client.post(words("XADD", "f", "*", "p", "late"), nil)
      #expect(await loop.until { !stream.isConnected })
      loop.skip(.seconds(2))
      #expect(await loop.until { seen.last == "late" })
      stream.close()
    }
  }
}
