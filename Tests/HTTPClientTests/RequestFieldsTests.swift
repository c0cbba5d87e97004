// RequestFieldsTests.swift -- the header fields that a server of HTTP/2 gets.

import CHTTP2
import HTTPMessage
import Testing

@testable import HTTPClient

@Suite struct `A request over HTTP/2` {
  @Test func `names method, target, server and the fields in lower case`() throws {
    let request = HTTPRequest(target: "/x?y=1", fields: [HTTPField("Accept", "application/dns-json")])
    #expect(
      try received(request, port: 443) == [
        ":method: GET", ":path: /x?y=1", ":scheme: https", ":authority: dns.test", "accept: application/dns-json",
      ])
  }

  @Test func `accepts anything unless it says otherwise, and names a port that is not the usual one`() throws {
    #expect(
      try received(HTTPRequest(target: "/"), port: 8443) == [
        ":method: GET", ":path: /", ":scheme: https", ":authority: dns.test:8443", "accept: */*",
      ])
  }

  @Test func `has a Host field as its authority`() throws {
    let request = HTTPRequest(target: "/", fields: [HTTPField("Host", "other.test")])
    #expect(try received(request, port: 443)[3] == ":authority: other.test")
    #expect(try received(request, port: 443).count == 5)
  }

  @Test func `says how long the content of a POST is`() throws {
    let request = HTTPRequest(method: .post, target: "/q", body: [1, 2, 3])
    #expect(
      try received(request, port: 443) == [
        ":method: POST", ":path: /q", ":scheme: https", ":authority: dns.test", "accept: */*", "content-length: 3",
      ])
  }

  @Test func `differs from the one before, of the same fields`() throws {
    let server = try #require(HTTPServerAddress(scheme: .https, name: "dns.test", addresses: ["192.0.2.1"]))
    let fields = RequestFields([], to: server)
    let post = HTTPRequest(method: .post, target: "/long/target", body: Array(repeating: 1, count: 1000))
    let sections = try [post, HTTPRequest(target: "/a"), post].map { try received($0, fields) }
    #expect(sections[0] == sections[2])
    #expect(sections[1].prefix(2) == [":method: GET", ":path: /a"])
    #expect(sections[1].count == 5)
    #expect(sections[2].last == "content-length: 1000")
  }

  private func received(_ request: HTTPRequest, port: UInt16) throws -> [String] {
    let server = try #require(
      HTTPServerAddress(scheme: .https, name: "dns.test", addresses: ["192.0.2.1"], port: port))
    return try received(request, RequestFields(request.fields, to: server))
  }

  /// The header section that nghttp2's server reads from what its client writes.
  private func received(_ request: HTTPRequest, _ fields: RequestFields) throws -> [String] {
    let section = Section()
    let owner = Unmanaged.passUnretained(section).toOpaque()
    var callbacks: OpaquePointer?
    nghttp2_session_callbacks_new(&callbacks)
    defer { nghttp2_session_callbacks_del(callbacks) }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) { _, _, name, nameLength, value, length, _, owner in
      let texts = [(name, nameLength), (value, length)].map {
        String(decoding: UnsafeBufferPointer(start: $0, count: $1), as: UTF8.self)
      }
      Unmanaged<Section>.fromOpaque(owner!).takeUnretainedValue().lines.append(texts.joined(separator: ": "))
      return 0
    }
    var sessions: (client: OpaquePointer?, server: OpaquePointer?)
    nghttp2_session_client_new(&sessions.client, callbacks, owner)
    nghttp2_session_server_new(&sessions.server, callbacks, owner)
    defer {
      nghttp2_session_del(sessions.client)
      nghttp2_session_del(sessions.server)
    }
    nghttp2_submit_settings(sessions.client, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil, 0)
    let stream = HTTP2Stream()
    let client = try #require(sessions.client)
    #expect(fields.submit(request, client, stream: Unmanaged.passUnretained(stream).toOpaque()) == 1)
    var octets: UnsafePointer<UInt8>?
    while case let count = nghttp2_session_mem_send(client, &octets), count > 0 {
      #expect(nghttp2_session_mem_recv(sessions.server, octets, count) == count)
    }
    return section.lines
  }

  private final class Section {
    var lines: [String] = []
  }
}
