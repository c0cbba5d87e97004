// SinkTests.swift -- content that is passed on piece by piece, in place of a body.

import HTTPMessage
import Synchronization
import TestSupport
import Testing

@testable import HTTPClient

@Suite struct `A sink` {
  private final class Taken: Sendable {
    let octets = Mutex<[UInt8]>([])
    var text: String { octets.withLock { String(decoding: $0, as: UTF8.self) } }
  }

  private func get(
    _ reply: String, most: Int = 1 << 20, count: Int = 1
  ) throws -> (results: [HTTPResult], taken: String) {
    let server = TestServer { _ in .send(reply) }
    defer { server.stop() }
    let taken = Taken()
    let results = try withOrigin(server) { options in
      options.usesHTTP2 = false
      options.maxBody = 10
      options.sink = { piece in
        let piece = Array(piece)
        return taken.octets.withLock { octets in
          octets += piece
          return octets.count <= most
        }
      }
    } body: { origin in
      var results: [HTTPResult] = []
      for _ in 0..<count { results.append(await origin.get()) }
      return results
    }
    return (results, taken.text)
  }

  @Test func `a sink gets the content of status 200, and the response has no body`() throws {
    let text = String(repeating: "a.example\n", count: 10_000)
    let (results, taken) = try get(response(text, fields: "ETag: \"a\"\r\nLast-Modified: yesterday\r\n"))
    let response = try #require(results[0].response)
    #expect(taken == text && response.body.isEmpty)
    #expect(response.entityTag == "\"a\"" && response.lastModified == "yesterday")
  }

  @Test func `content of another status is not read, and the next request is answered`() throws {
    let (results, taken) = try get(
      response(String(repeating: "x", count: 5000), fields: "Location: /next\r\n", status: "302 Found"), count: 2)
    #expect(taken.isEmpty && results.map { $0.response?.status } == [302, 302])
    #expect(results[0].response?.location == "/next")
  }

  @Test func `a sink that takes no more ends the transfer`() throws {
    let (results, _) = try get(response(String(repeating: "x", count: 500_000)), most: 1000)
    #expect(results[0].failure?.kind == .tooLarge)
  }

  @Test func `content with several codings is refused before it is unpacked`() throws {
    let (results, taken) = try get(response("a.example", fields: "Content-Encoding: gzip,gzip\r\n"))
    #expect(results[0].failure?.kind == .badHTTP && taken.isEmpty)
  }
}
