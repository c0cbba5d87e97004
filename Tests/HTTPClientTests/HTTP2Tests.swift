// HTTP2Tests.swift -- many transfers over one connection.

import HTTPClient
import HTTPMessage
import Synchronization
import Testing

@Suite(.onBothStacks) struct `Over HTTP/2` {
  @Test func `the first burst waits for one connection and shares it`() throws {
    let (results, connections) = try withHTTP2 { _ in
      .send("x")
    } body: {
      await $0.burst(64)
    }
    #expect(results.count { $0.response?.text == "x" && $0.response?.httpVersion == 2 } == 64)
    #expect(connections == 1)
  }

  @Test func `responses that come together or one by one each reach their transfer`() throws {
    let (results, connections) = try withHTTP2 { request in
      request.stream == 1 ? .send("first") : .respondTogether(count: 30, "late")
    } body: { origin in
      _ = await origin.get()
      var results: [HTTPResult] = []
      for _ in 0..<20 { results += await origin.burst(30) }
      return results
    }
    #expect(results.count { $0.response?.text == "late" } == 600)
    #expect(connections == 1)
  }

  @Test func `content of POSTs arrives`() throws {
    let (results, _) = try withHTTP2 {
      .send("\($0.body.count)")
    } body: { origin in
      await origin.burst(40, HTTPRequest(method: .post, target: "/", body: Array(repeating: 1, count: 300)))
    }
    #expect(results.count { $0.response?.text == "300" } == 40)
  }

  @Test func `content longer than libcurl's buffer arrives whole`() throws {
    let text = String(repeating: "0123456789", count: 1200)
    let (results, _) = try withHTTP2 { request in
      request.stream == 1 ? .send("first") : .respondTogether(count: 10, text)
    } body: { origin in
      _ = await origin.get()
      return await origin.burst(10)
    }
    #expect(results.count { $0.response?.text == text } == 10)
  }

  @Test func `content that is too long ends its own transfer only`() throws {
    let requests = Atomic<Int>(0)
    let (long, fitting) = (String(repeating: "x", count: 70_000), String(repeating: "y", count: 60_000))
    let (results, connections) = try withHTTP2 { _ in
      requests.wrappingAdd(1, ordering: .relaxed).newValue % 10 == 5 ? .send(long) : .send(fitting)
    } body: {
      await $0.burst(40)
    }
    #expect(results.count { $0.failure?.kind == .tooLarge } == 4)
    #expect(results.count { $0.response?.text == fitting } == 36)
    #expect(connections == 1)
  }

  @Test func `one transfer's timeout leaves the others and the connection alone`() throws {
    let requests = Atomic<Int>(0)
    let (results, connections) = try withHTTP2 { _ in
      requests.wrappingAdd(1, ordering: .relaxed).newValue == 3 ? .stall : .send("x")
    } body: { origin in
      var results: [HTTPResult] = []
      for index in 0..<6 {
        results.append(index == 2 ? await origin.get(timeout: .milliseconds(100)) : await origin.get())
      }
      return results
    }
    #expect(results.map { $0.response?.text } == ["x", "x", nil, "x", "x", "x"])
    #expect(results[2].failure?.kind == .timeout)
    #expect(connections == 1)
  }

  @Test func `the end of the connection ends all its transfers, and the next opens another`() throws {
    let requests = Atomic<Int>(0)
    let ((results, after), connections) = try withHTTP2 { _ in
      switch requests.wrappingAdd(1, ordering: .relaxed).newValue {
      case 1: .send("x")
      case ..<21: .stall
      case 21: .sendAndClose("")
      default: .send("y")
      }
    } body: { origin in
      _ = await origin.get()
      let results = await origin.burst(20)
      return (results, await origin.get())
    }
    #expect(results.count { $0.failure?.kind == .reset || $0.response?.text == "y" } == 20)
    #expect(after.response?.text == "y")
    #expect(connections == 2)
  }

  @Test func `fields of an interim response and of a trailer are not the response's`() throws {
    let (results, connections) = try withHTTP2 { request in
      .acts(request.stream == 1 ? [.hint, .respond("x")] : [.respondWithTrailer("y")])
    } body: { origin in
      [await origin.get(), await origin.get()]
    }
    #expect(results.map { $0.response?.text } == ["x", "y"])
    #expect(results.map { $0.response?.status } == [200, 200])
    #expect(results[0].response?.age == nil)
    if Stack.current == .streams { #expect(results[1].response?.age == nil) }
    #expect(connections == 1)
  }

  @Test func `a header section that is too long ends its own transfer only`() throws {
    let (results, connections) = try withHTTP2 { request in
      request.stream == 3 ? .acts([.respondWithFields(count: 5)]) : .acts([.respondWithFields(count: 4)])
    } body: { origin in
      [await origin.get(), await origin.get(), await origin.get()]
    }
    #expect(results.map { $0.response?.status } == [200, nil, 200])
    #expect(results[1].failure?.kind == .badHTTP)
    #expect(connections == 1)
  }

  @Test func `interim responses without end are cut off`() throws {
    let (results, _) = try withHTTP2 { request in
      .acts(Array(repeating: .hint, count: request.stream == 1 ? 3000 : 10) + [.respond("x")])
    } body: { origin in
      [await origin.get(), await origin.get()]
    }
    #expect(results[0].failure?.kind == .badHTTP)
    #expect(results[1].response?.text == "x")
  }

  @Test func `closing the origin ends the transfers at the server and those that wait`() throws {
    let (kinds, _) = try withHTTP2(peer: HTTP2Peer(maxStreams: 4)) {
      $0.maxConnections = 1
    } react: {
      $0.stream == 1 ? .send("x") : .stall
    } body: { origin in
      _ = await origin.get()
      async let results = origin.burst(9)
      while origin.inFlight < 9 { await Task.yield() }
      origin.close()
      return await results.map { $0.failure?.kind }
    }
    #expect(kinds == Array(repeating: .cancelled, count: 9))
  }
}
