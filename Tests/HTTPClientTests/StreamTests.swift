// StreamTests.swift -- connections of HTTP/2 streams: how many there are, where they go to, and how they fail.

import CCurl
import EventLoop
import Glibc
import HTTPMessage
import TLSTestSupport
import TestSupport
import Testing

@testable import HTTPClient

@Suite struct `A number of transfers` {
  @Test(
    arguments: [
      (0, 100, 64, 0), (1, 100, 64, 1), (75, 100, 64, 1), (76, 100, 64, 2), (150, 100, 64, 2), (151, 100, 64, 3),
      (1000, 100, 64, 14), (1000, 100, 4, 4), (50, 1, 64, 50), (2, 0, 64, 2), (1000, 1 << 32, 64, 1),
      (Int.max, 100, 64, 64),
    ] as [(Int, Int, Int, Int)])
  func `needs connections before those that are open are full`(
    transfers: Int, streams: Int, most: Int, expected: Int
  ) {
    #expect(ConnectionGrowth.connections(for: transfers, streams: streams, most: most) == expected)
  }
}

@Suite struct `Connections of streams` {
  @Test func `a connection is opened before the others are full`() throws {
    // The last one may be accepted after all transfers have ended on the others.
    let (counts, connections) = try withHTTP2(peer: HTTP2Peer(maxStreams: 8), awaiting: 3) {
      $0.stream == 1 ? .send("first") : .respondWhenQuiet("x")
    } body: { origin in
      _ = await origin.get()
      var counts: [Int] = []
      for count in [6, 7, 13] {
        _ = await origin.burst(count)
        counts.append(origin.connectionCount)
      }
      return counts
    }
    #expect(counts == [1, 2, 3])
    #expect(connections == 3)
  }

  @Test func `a burst gets all its connections at once, up to the maximum`() throws {
    let (results, connections) = try withHTTP2(peer: HTTP2Peer(maxStreams: 10)) {
      $0.maxConnections = 16
    } react: {
      .respondWhenQuiet("\($0.connection)")
    } body: { origin in
      _ = await origin.get()
      return await origin.burst(1000)
    }
    #expect(results.count { $0.response != nil } == 1000)
    #expect(Set(results.compactMap { $0.response?.text }).count == 16)
    #expect(connections == 16)
  }

  @Test func `connections that are not needed are closed, all but one`() throws {
    let ((left, after), connections) = try withHTTP2(peer: HTTP2Peer(maxStreams: 10)) {
      $0.surplusTime = .milliseconds(20)
    } react: { _ in
      .respondWhenQuiet("x")
    } body: { origin in
      _ = await origin.get()
      _ = await origin.burst(50)
      _ = await origin.loop.until(every: .milliseconds(5)) { origin.connectionCount == 1 }
      return (connectedDescriptors(to: origin.server.port).count, await origin.get())
    }
    #expect(left == 1)
    #expect(after.response?.text == "x")
    #expect(connections == 8)
  }

  @Test func `a connection at its maximum age takes no more transfers`() throws {
    let (texts, _) = try withHTTP2 {
      $0.maxAge = .milliseconds(100)
    } react: {
      .send("\($0.connection)")
    } body: { origin in
      var texts: [String?] = []
      _ = await origin.loop.until(every: .milliseconds(10)) {
        texts.append(await origin.get().response?.text)
        return texts.last != "0"
      }
      return texts
    }
    #expect(texts.last == "1" && texts.count > 2)
    #expect(texts.dropLast().allSatisfy { $0 == "0" })
  }

  @Test func `the other family joins after 250 ms when one hangs`() throws {
    let server = TestServer(tls: true, http2: true) { _ in .send("x") }
    defer { server.stop() }
    let full = try #require(FullListener(port: server.port), "no IPv6 loopback")
    let file = TemporaryFile(Certificates.authority)
    let (response, took) = try withOrigin(server, scheme: .https, addresses: ["::1", "127.0.0.1"]) {
      $0.caFile = file.path
    } body: { origin in
      let began = BootInstant.now
      return (await origin.get(timeout: longestStep).response, BootInstant.now - began)
    }
    #expect(response?.remoteAddress == "127.0.0.1" && response?.httpVersion == 2)
    #expect(took >= .milliseconds(250))
    withExtendedLifetime(full) {}
  }

  @Test(arguments: [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]])
  func `a connection uses the address that answers, of either family`(addresses: [String]) throws {
    let server = TestServer(tls: true, http2: true) { _ in .send("x") }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let response = try withOrigin(server, scheme: .https, addresses: addresses) {
      $0.caFile = file.path
    } body: {
      await $0.get().response
    }
    #expect(response?.remoteAddress == "127.0.0.1")
  }

  @Test func `a port without a listener fails all that wait`() throws {
    let (descriptor, port) = listeningSocket(backlog: 1)
    close(descriptor)
    let failures = try withOrigin(port: port, scheme: .https) { await $0.burst(10) }.compactMap(\.failure)
    #expect(failures.count == 10)
    #expect(failures.allSatisfy { $0.kind == .refused && !$0.wasSent })
  }

  @Test func `a server that answers without TLS is named`() throws {
    let (descriptor, port) = listeningSocket(backlog: 4)
    defer { close(descriptor) }
    let failure = try withOrigin(port: port, scheme: .https) { origin in
      let event = LoopEvent(on: origin.loop, descriptor: descriptor, .read) { _ in
        let connection = accept(descriptor, .init(__sockaddr__: nil), nil)
        let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
        send(connection, text, text.count, Int32(MSG_NOSIGNAL))
        close(connection)
      }
      let failure = await origin.get().failure
      withExtendedLifetime(event) {}
      return failure
    }
    #expect(failure?.kind == .tls)
    #expect(failure?.reason == "the server does not speak TLS; is it an http port?")
  }

  @Test func `a connection whose server breaks the rules is closed at once, and the next transfer gets another one`()
    throws
  {
    let (results, connections) = try withHTTP2 {
      $0.connection == 0 ? .acts([.breakRules]) : .send("x")
    } body: { origin in
      let began = BootInstant.now
      let first = await origin.get(timeout: .seconds(20))
      #expect(BootInstant.now - began < .seconds(10))
      return [first, await origin.get()]
    }
    #expect(results[0].failure?.kind == .badHTTP)
    #expect(results[1].response?.text == "x")
    #expect(connections == 2)
  }

  @Test func `a response that is cut off is a failure, whatever code ends its stream`() throws {
    let (result, _) = try withHTTP2 { _ in
      .acts([.cutOff("{\"Status\":0", .none)])
    } body: {
      await $0.get()
    }
    #expect(result.failure?.kind == .reset)
  }

  @Test func `a lost connection is not replaced by many while others are open`() throws {
    let (results, connections) = try withHTTP2(peer: HTTP2Peer(maxStreams: 2, laterStreams: 2)) {
      $0.connection == 0 ? .respondWhenQuiet("x") : .sendAndClose("")
    } body: { origin in
      _ = await origin.get()
      return await origin.burst(100)
    }
    #expect(results.count { $0.response != nil || $0.failure?.kind == .reset } == 100)
    #expect(connections < 1000)
  }
}
