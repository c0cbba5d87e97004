// HTTP2LimitTests.swift -- a server that ends its connections, allows few streams, or asks for calm.

import EventLoop
import HTTPMessage
import Synchronization
import Testing

@testable import HTTPClient

@Suite(.onBothStacks) struct `An HTTP/2 server that` {
  @Test func `a GOAWAY in mid-stream moves the unanswered transfers to new connections`() throws {
    let requests = Atomic<Int>(0)
    let ((results, after), connections) = try withHTTP2 { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      switch (request.connection, request.stream) {
      case (0, 1): return .send("first")
      case (0, 21): return .acts([.hold, .goAway(last: 11, .none), .respondToHeld("old")])
      case (0, _): return .acts([.hold])
      default: return .send("new")
      }
    } body: { origin in
      _ = await origin.get()
      let results = await origin.burst(10)
      return (results, await origin.get())
    }
    #expect(results.count { $0.response?.text == "old" } == 5)
    #expect(results.count { $0.response?.text == "new" } == 5)
    #expect(after.response?.text == "new")
    // One before, ten, five of them again, and one after: nothing that was taken is asked for twice.
    #expect(requests.load(ordering: .relaxed) == 17)
    #expect((2...6).contains(connections))
  }

  @Test func `a GOAWAY with a closed connection fails only the transfers in flight`() throws {
    let ((results, after), connections) = try withHTTP2 { request in
      switch (request.connection, request.stream) {
      case (0, 1): .send("first")
      case (0, 21): .acts([.goAway(last: 21, .none), .close])
      case (0, _): .stall
      default: .send("new")
      }
    } body: { origin in
      _ = await origin.get()
      let results = await origin.burst(10)
      var after: [HTTPResult] = []
      for _ in 0..<5 { after.append(await origin.get()) }
      return (results, after)
    }
    #expect(results.count { $0.failure?.kind == .reset || $0.response?.text == "new" } == 10)
    #expect(after.count { $0.response?.text == "new" } == 5)
    #expect(connections >= 2)
  }

  @Test func `a GOAWAY with every response costs a new connection for each request`() throws {
    let (texts, connections) = try withHTTP2 { request in
      .acts([.goAway(last: request.stream, .none), .respond("\(request.connection)")])
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<5 { texts.append(await origin.get().response?.text) }
      return texts
    }
    #expect(texts == ["0", "1", "2", "3", "4"])
    #expect(connections == 5)
  }

  @Test(arguments: [1, 4]) func `a server that allows few streams never gets more at a time`(most: Int) throws {
    let peer = HTTP2Peer(maxStreams: UInt32(most))
    let (results, _) = try withHTTP2(peer: peer) { _ in
      .respondWhenQuiet("x")
    } body: { origin in
      let first = await origin.get()
      return [first] + (await origin.burst(50))
    }
    #expect(results.count { $0.response?.text == "x" } == 51)
    #expect(peer.streamsTooMany == 0)
    #expect(peer.mostStreams == most)
  }

  @Test(arguments: [1, 4]) func `streams refused before the limit is known fail no transfer of the first burst`(
    most: Int
  ) throws {
    let peer = HTTP2Peer(maxStreams: UInt32(most), isStrict: true)
    let (results, connections) = try withHTTP2(peer: peer) { _ in
      .respondWhenQuiet("x")
    } body: {
      await $0.burst(50)
    }
    #expect(results.count { $0.response?.text == "x" } == 50)
    #expect(peer.streamsTooMany == 0)
    #expect(connections <= (Stack.current == .curl ? 2 : HTTPClientOptions().maxConnections))
  }

  @Test func `refused streams and occasional GOAWAYs fail no transfer`() throws {
    let peer = HTTP2Peer(maxStreams: 1, isStrict: true)
    let requests = Atomic<Int>(0)
    let (results, _) = try withHTTP2(peer: peer) { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      return request.stream % 10 == 9 ? .acts([.goAway(last: request.stream, .none), .respond("x")]) : .send("x")
    } body: {
      await $0.burst(100)
    }
    #expect(results.count { $0.response?.text == "x" } == 100)
    #expect(peer.streamsTooMany == 0)
    // One that crosses a GOAWAY on its way is not processed, and goes again (RFC 9113 section 6.8).
    #expect(requests.load(ordering: .relaxed) == 100)
  }

  @Test func `a smaller limit on a later connection fails no transfer`() throws {
    let peer = HTTP2Peer(maxStreams: 20, laterStreams: 1, isStrict: true)
    let requests = Atomic<Int>(0)
    let ((first, burst), _) = try withHTTP2(peer: peer) { request in
      requests.wrappingAdd(1, ordering: .relaxed)
      guard request.connection == 0 else { return .respondWhenQuiet("x") }
      return .acts([.goAway(last: request.stream, .none), .respond("x")])
    } body: { origin in
      (await origin.get(), await origin.burst(100))
    }
    #expect(first.response?.text == "x")
    #expect(burst.count { $0.response?.text == "x" } == 100)
    // What was refused was not processed: nothing is asked for twice.
    #expect(requests.load(ordering: .relaxed) == 101)
  }

  @Test func `a limit lowered on an open connection is respected from then on`() throws {
    let peer = HTTP2Peer(maxStreams: 20)
    let (results, _) = try withHTTP2(peer: peer) {
      $0.maxConnections = 1
    } react: {
      $0.stream == 21 ? .acts([.allow(streams: 2), .hold]) : .respondWhenQuiet("x")
    } body: { origin in
      let first = await origin.get()
      return [first] + (await origin.burst(50))
    }
    #expect(results.count { $0.response?.text == "x" } == 51)
    #expect(peer.acknowledgedLimits.prefix(2) == [20, 2])
    #expect(peer.streamsTooMany == 0)
  }

  @Test func `a redirection is not followed`() throws {
    let requests = Atomic<Int>(0)
    let (result, connections) = try withHTTP2 { _ in
      requests.wrappingAdd(1, ordering: .relaxed)
      return .acts([.redirect("/other")])
    } body: {
      await $0.get()
    }
    #expect(result.response?.status == 302)
    #expect(result.response?.httpVersion == 2)
    #expect(requests.load(ordering: .relaxed) == 1)
    #expect(connections == 1)
  }

  @Test func `a stream reset with ENHANCE_YOUR_CALM is a failure of its own, also of those that wait`() throws {
    let requests = Atomic<Int>(0)
    let (kinds, connections) = try withHTTP2 { _ in
      requests.wrappingAdd(1, ordering: .relaxed)
      return .acts([.reset(.enhanceYourCalm)])
    } body: { origin in
      await origin.burst(100).map { $0.failure?.kind }
    }
    #expect(kinds == Array(repeating: .calm, count: 100))
    // libcurl waits for the first response; streams begin when the server has said how many it allows.
    #expect(requests.load(ordering: .relaxed) <= (Stack.current == .curl ? 1 : 100))
    #expect(connections == 1)
  }

  @Test func `a GOAWAY with ENHANCE_YOUR_CALM is reported as such`() throws {
    let (kinds, _) = try withHTTP2 { _ in
      .acts([.goAway(last: 0, .enhanceYourCalm), .close])
    } body: { origin in
      var kinds: [HTTPFailure.Kind?] = []
      for _ in 0..<5 { kinds.append(await origin.get().failure?.kind) }
      return kinds
    }
    // With libcurl, the first failure makes the client look for the reason of the second.
    #expect(kinds == [Stack.current == .curl ? .reset : .calm] + Array(repeating: .calm, count: 4))
  }
}
