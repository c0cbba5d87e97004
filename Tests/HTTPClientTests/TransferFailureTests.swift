// TransferFailureTests.swift -- everything that can go wrong on the way, each with its kind of failure.

import EventLoop
import Glibc
import HTTPClient
import HTTPMessage
import TestSupport
import Testing

@Suite struct `A transfer that fails` {
  @Test func `content of the maximum length arrives, one octet more does not`() throws {
    let server = TestServer { .send(response(String(repeating: "x", count: $0.head.contains("/long") ? 1001 : 1000))) }
    defer { server.stop() }
    let (short, long, after) = try withOrigin(server) { options in
      options.maxBody = 1000
    } body: { origin in
      (await origin.get("/short"), await origin.get("/long"), await origin.get("/short"))
    }
    #expect(short.response?.body.count == 1000)
    #expect(long.failure?.kind == .tooLarge)
    #expect(after.response?.body.count == 1000)
  }

  @Test func `an idle handle holds no content of a failed transfer`() throws {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + String(repeating: "x", count: 50_000)
    let server = TestServer {
      $0.head.contains("/long") ? .send(response(String(repeating: "x", count: 100_001))) : .sendAndClose(half)
    }
    defer { server.stop() }
    let (failures, held) = try withOrigin(server) { options in
      options.maxBody = 100_000
    } body: { origin in
      (await [origin.get("/long").failure?.kind, origin.get("/half").failure?.kind], origin.heldOctets)
    }
    #expect(failures == [.tooLarge, .reset])
    #expect(held == 0)
  }

  @Test func `a header section without end is cut off`() throws {
    let fields = String(repeating: "X-Filler: \(String(repeating: "y", count: 80))\r\n", count: 400)
    let server = TestServer { _ in .send(response("x", fields: fields)) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.failure?.kind == .badHTTP)
  }

  @Test(arguments: [true, false])
  func `a connection that ends in the middle of the content is a reset`(byReset: Bool) throws {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    let server = TestServer { _ in byReset ? .sendAndReset(half) : .sendAndClose(half) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.failure?.kind == .reset)
  }

  @Test func `a silent server costs exactly the timeout`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let began = BootInstant.now
    let result = try withOrigin(server) { await $0.get(timeout: .milliseconds(50)) }
    let took = BootInstant.now - began
    #expect(result.failure?.kind == .timeout)
    #expect(took >= .milliseconds(45))
    #expect(took < longestStep)
  }

  @Test func `a server that stops in the middle of the content costs the timeout`() throws {
    let server = TestServer { _ in .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get(timeout: .milliseconds(50)) }
    #expect(result.failure?.kind == .timeout)
  }

  @Test func `a request without a connection ends in time, as the timeout of a server that says nothing`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxConnections = 1
    } body: {
      await $0.burst(20, timeout: .milliseconds(50))
    }
    #expect(results.allSatisfy { $0.failure?.kind == .timeout })
    #expect(results.count { $0.failure?.wasSent == true } == 1)
  }

  @Test func `a port without a listener is refused`() throws {
    // The port was free a moment ago and is not given out again so soon.
    let server = TestServer { _ in .stall }
    server.stop()
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.failure?.kind == .refused)
  }

  @Test(arguments: ["SSH-2.0-OpenSSH_9.2\r\n", "\u{0}\u{1}\u{2}\u{3}\r\n\r\n", "HTTP/9.9 abc\r\n\r\n"])
  func `a response that is not HTTP is refused`(garbage: String) throws {
    let server = TestServer { _ in .sendAndClose(garbage) }
    defer { server.stop() }
    let kind = try withOrigin(server) { await $0.get() }.failure?.kind
    #expect(kind == .badHTTP)
  }

  @Test(arguments: ["", "no-slash", "/a b", "/a\r\nX: y", "/ä"])
  func `a target that could carry something else is not sent`(target: String) throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get(target) }
    #expect(result.failure?.kind == .badRequest)
    #expect(server.accepted == 0)
  }

  @Test func `a header field that could carry another is not sent`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let request = HTTPRequest(target: "/", fields: [HTTPField("Accept", "a\r\nX: y")])
    let result = try withOrigin(server) { await $0.send(request, timeout: .seconds(10)) }
    #expect(result.failure?.kind == .badRequest)
  }

  @Test func `one transfer more than allowed is refused at once`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxInFlight = 5
    } body: {
      await $0.burst(7, timeout: .milliseconds(50))
    }
    #expect(results.count { $0.failure?.kind == .busy } == 2)
    #expect(results.count { $0.failure?.kind == .timeout } == 5)
  }

  @Test func `closing the origin ends the transfers in flight`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let (results, late) = try withOrigin(server) { origin in
      async let results = origin.burst(5)
      while origin.inFlight < 5 { await Task.yield() }
      origin.close()
      return (await results, await origin.get())
    }
    #expect(results.count { $0.failure?.kind == .cancelled } == 5)
    #expect(late.failure?.kind == .cancelled)
  }

  @Test func `an idle connection that the server closed is replaced without a failure`() throws {
    let server = TestServer { $0.connection == 0 ? .sendAndClose(response("first")) : .send(response("second")) }
    defer { server.stop() }
    let texts = try withOrigin(server) { origin in
      [await origin.get().response?.text, await origin.get().response?.text]
    }
    #expect(texts == ["first", "second"])
  }

  @Test func `two timeouts in a row open new connections, one does not`() throws {
    let server = TestServer { $0.head.contains("/stall") ? .stall : .send(response("x")) }
    defer { server.stop() }
    let generations = try withOrigin(server) { origin in
      var generations: [Int] = []
      for target in ["/stall", "/", "/stall", "/", "/stall", "/stall", "/stall", "/"] {
        _ = await origin.get(target, timeout: .milliseconds(target == "/" ? 10_000 : 30))
        generations.append(origin.generationCount)
      }
      return generations
    }
    #expect(generations == [1, 1, 1, 1, 1, 2, 2, 2])
  }

  @Test func `timeouts beside answers say nothing about the connections`() throws {
    let server = TestServer { $0.head.contains("/stall") ? .stall : .send(response("x")) }
    defer { server.stop() }
    // A machine that is busy elsewhere may have no answer shortly before a short time is up.
    for timeout in [Duration.milliseconds(300), .seconds(3), .seconds(30)] {
      let (hadLateAnswer, generations) = try withOrigin(server) { origin in
        async let first = origin.get("/stall", timeout: timeout)
        async let second = origin.get("/stall", timeout: timeout)
        while origin.inFlight < 2 { await Task.yield() }
        let begin = ContinuousClock.now
        var lastAnswer = begin
        while true {
          _ = await origin.get("/")
          guard origin.inFlight == 2 else { break }
          lastAnswer = .now
        }
        _ = await (first, second)
        return (lastAnswer - begin > timeout * 0.9, origin.generationCount)
      }
      guard hadLateAnswer else { continue }
      #expect(generations == 1)
      return
    }
    Issue.record("no answer shortly before the timeouts")
  }

  @Test func `many timeouts of one burst open one generation`() throws {
    let server = TestServer { _ in .stall }
    defer { server.stop() }
    let (kinds, generations) = try withOrigin(server) { origin in
      (await origin.burst(30, timeout: .milliseconds(50)).map { $0.failure?.kind }, origin.generationCount)
    }
    // There are more transfers than connections, but the server has answered none of them.
    #expect(kinds.allSatisfy { $0 == .timeout })
    #expect(generations == 2)
  }

  @Test func `a transfer that waits while others are answered has reached our own limit`() throws {
    let server = TestServer { request in
      request.head.hasPrefix("GET /slow") ? .stall : .send(response("x"))
    }
    defer { server.stop() }
    let kinds = try withOrigin(server) { options in
      options.maxConnections = 4
    } body: { origin in
      _ = await origin.get()
      let (greedy, other) = (TestOwner(client: 1), TestOwner(client: 2))
      async let slow = origin.burst(8, HTTPRequest(target: "/slow"), for: greedy, timeout: .seconds(1))
      while greedy.ended < 8 {
        _ = await origin.send(HTTPRequest(target: "/"), for: other, timeout: longestStep)
      }
      return await slow.map { $0.failure?.kind }
    }
    #expect(kinds.count { $0 == .busy } == 5 && kinds.count { $0 == .timeout } == 3)
  }

  @Test func `renewed connections are new, and the old ones end with their last transfer`() throws {
    let server = TestServer { $0.head.contains("/slow") ? .stall : .send(response("\($0.connection)")) }
    defer { server.stop() }
    let (texts, slow, open) = try withOrigin(server) { origin in
      var texts = [await origin.get().response?.text]
      async let slow = origin.get("/slow", timeout: .milliseconds(50))
      while origin.inFlight == 0 { await Task.yield() }
      origin.renewConnections()
      texts.append(await origin.get().response?.text)
      let result = await slow
      texts.append(await origin.get().response?.text)
      return (texts, result, connections(to: server.port))
    }
    #expect(texts == ["0", "1", "1"])
    #expect(slow.failure?.kind == .timeout)
    #expect(open == 1)
  }
}
