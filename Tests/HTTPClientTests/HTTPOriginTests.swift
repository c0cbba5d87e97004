// HTTPOriginTests.swift -- transfers over HTTP/1.1 against a server that behaves and one that does not.

import EventLoop
import HTTPClient
import HTTPMessage
import Synchronization
import Testing

@Suite struct `An origin` {
  @Test func `a GET brings status, fields and content`() throws {
    let fields = """
      Content-Type: application/dns-message \r
      Cache-Control: private, max-age=300\r
      Age: 20\r
      Date: Sun, 06 Nov 1994 08:49:37 GMT\r

      """
    let server = TestServer { _ in .send(response("hello", fields: fields)) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get("/dns-query?dns=AAAA") }
    let answer = try #require(result.response)
    #expect(answer.status == 200)
    #expect(answer.contentType == "application/dns-message")
    #expect(answer.maxAge == 300)
    #expect(answer.age == 20)
    #expect(answer.date == 784_111_777)
    #expect(answer.text == "hello")
    #expect(answer.httpVersion == 1)
    #expect(answer.remoteAddress == "127.0.0.1")
  }

  @Test func `the request bears the target, the name and the fields, and nothing that was not asked for`() throws {
    let seen = Mutex<[String]>([])
    let server = TestServer { request in
      seen.withLock { $0.append(request.head) }
      return .send(response(""))
    }
    defer { server.stop() }
    let fields = [HTTPField("Accept", "application/dns-json")]
    _ = try withOrigin(server) { origin in
      await origin.send(HTTPRequest(target: "/resolve?name=a%20b&x=/../y", fields: fields), timeout: .seconds(10))
    }
    let head =
      "GET /resolve?name=a%20b&x=/../y HTTP/1.1\r\nHost: dns.test:\(server.port)\r\nAccept: application/dns-json\r\n\r\n"
    #expect(seen.withLock { $0 } == [head])
  }

  @Test func `content of POSTs arrives, also empty, long and after a GET on the same handle`() throws {
    let server = TestServer { .send(response("\($0.head.prefix(4)) \($0.body.count) \($0.body.last ?? 0)")) }
    defer { server.stop() }
    let bodies: [[UInt8]] = [[1, 2, 3], [], Array(repeating: 7, count: 5000), [9]]
    let texts = try withOrigin(server) { origin in
      var texts: [String?] = []
      for body in bodies {
        texts.append(await origin.get().response?.text)
        let request = HTTPRequest(method: .post, target: "/", body: body)
        texts.append(await origin.send(request, timeout: .seconds(10)).response?.text)
      }
      return texts
    }
    #expect(
      texts == ["GET  0 0", "POST 3 3", "GET  0 0", "POST 0 0", "GET  0 0", "POST 5000 7", "GET  0 0", "POST 1 9"])
  }

  @Test func `a hundred requests after each other use one connection and one handle`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let (successes, handles) = try withOrigin(server) { origin in
      var successes = 0
      for _ in 0..<100 where await origin.get().response != nil { successes += 1 }
      return (successes, origin.handleCount)
    }
    #expect(successes == 100)
    #expect(handles == 1)
    #expect(server.accepted == 1)
  }

  @Test func `a hundred requests at a time use as many connections as allowed`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let results = try withOrigin(server) { options in
      options.maxConnections = 3
    } body: {
      await $0.burst(100)
    }
    #expect(results.count { $0.response?.text == "x" } == 100)
    #expect((1...3).contains(server.accepted))
  }

  @Test func `ten thousand transfers leave few handles and no descriptor`() throws {
    let server = TestServer { _ in .send(response("x")) }
    defer { server.stop() }
    let (successes, handles, open) = try withOrigin(server) { origin in
      var successes = 0
      for _ in 0..<250 { successes += await origin.burst(40).count { $0.response != nil } }
      return (successes, origin.handleCount, connections(to: server.port))
    }
    #expect(successes == 10_000)
    #expect(handles == 40)
    // Eight are open before a transfer needs them.
    #expect(open <= 48)
    #expect(connections(to: server.port) == 0)
  }

  @Test func `chunked content is put together`() throws {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    let server = TestServer { _ in .send(chunked) }
    defer { server.stop() }
    let texts = try withOrigin(server) { origin in
      [await origin.get().response?.text, await origin.get().response?.text]
    }
    #expect(texts == ["hello world", "hello world"])
    #expect(server.accepted == 1)
  }

  @Test func `an interim response is passed over, with its fields`() throws {
    let server = TestServer { _ in .send("HTTP/1.1 103 Early Hints\r\nAge: 7\r\n\r\n" + response("x")) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.response?.status == 200)
    #expect(result.response?.age == nil)
  }

  @Test func `a redirection is a response and is not followed`() throws {
    let server = TestServer { _ in .send(response("", fields: "Location: /other\r\n", status: "302 Found")) }
    defer { server.stop() }
    let result = try withOrigin(server) { await $0.get() }
    #expect(result.response?.status == 302)
  }
}
