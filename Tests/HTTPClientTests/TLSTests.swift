// TLSTests.swift -- whose certificate is taken, and for which name.

import Synchronization
import TLSTestSupport
import TestSupport
import Testing

@testable import HTTPClient

@Suite(.onBothStacks) struct `A certificate` {
  private func get(
    _ server: TestServer, name: String = "dns.test", authority: String = Certificates.authority,
    _ adjust: (inout HTTPClientOptions) -> Void = { _ in }
  ) throws -> HTTPResult {
    let file = TemporaryFile(authority)
    return try withOrigin(server, scheme: .https, name: name) { options in
      options.caFile = file.path
      adjust(&options)
    } body: {
      await $0.get()
    }
  }

  private func serving(_ body: (TestServer) throws -> Void) throws {
    let server = TestServer(tls: true) { _ in .send(response("secret")) }
    defer { server.stop() }
    try body(server)
  }

  @Test(arguments: ["dns.test", "127.0.0.1"])
  func `a certificate of a known authority is accepted for each of its names`(name: String) throws {
    try serving { server in
      let result = try get(server, name: name)
      #expect(result.response?.text == "secret")
    }
  }

  @Test(arguments: ["other.test", "127.0.0.2", "test"])
  func `a certificate is refused for another name`(name: String) throws {
    try serving { server in
      let failure = try #require(try get(server, name: name).failure)
      #expect(failure.kind == .certificate && failure.isForAnotherName)
      #expect(failure.reason.contains("does not match") || failure.reason.contains("no alternative certificate"))
    }
  }

  @Test func `a certificate of an unknown authority is refused`() throws {
    try serving { server in
      let result = try get(server, authority: Certificates.otherAuthority)
      #expect(result.failure?.kind == .certificate)
      #expect(result.failure?.reason.hasSuffix("; if the server is your own, give its CA with ca_file") == true)
    }
  }

  @Test func `TLS to a plain HTTP port fails and names the likely port`() throws {
    try serving { server in
      let failure = try withOrigin(server) { await $0.get() }.failure
      #expect(
        failure?.kind == .reset && failure?.reason.hasSuffix("; is it an https port?") == true, "\(failure as Any)")
    }
  }

  @Test(arguments: [(2_000_000_000, true), (9_000_000_000, false)] as [(Int64, Bool)])
  func `a certificate is checked by the day of the build if the clock is before it`(
    buildTime: Int64, isTaken: Bool
  ) throws {
    try serving { server in
      let result = try get(server) { $0.certificateClock = CertificateClock(buildTime: buildTime) { 1000 } }
      #expect((result.response?.text == "secret") == isTaken)
      if !isTaken { #expect(result.failure?.kind == .certificate) }
      // A clock that can be right is believed.
      let later = try get(server) { $0.certificateClock = CertificateClock(buildTime: 0) }
      #expect(later.response?.text == "secret")
    }
  }

  @Test(arguments: [(0x0302, false), (0x0303, true), (0x0304, true)])
  func `TLS 1.2 and 1.3 are accepted, and nothing is sent over older versions`(version: Int, isTaken: Bool) throws {
    let requests = Atomic(0)
    let server = TestServer(tls: true, highestTLS: version) { _ in
      requests.add(1, ordering: .relaxed)
      return .send(response("secret"))
    }
    defer { server.stop() }
    let result = try get(server)
    #expect((result.response?.text == "secret") == isTaken)
    #expect(requests.load(ordering: .relaxed) == (isTaken ? 1 : 0))
    if !isTaken { #expect(result.failure?.kind == .tls) }
  }

  @Test func `a certificate is accepted with its pin and refused with another`() throws {
    let wrong = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    try serving { server in
      let right = try get(server) { $0.pins = [Certificates.serverPin] }
      let oneOfTwo = try get(server) { $0.pins = [wrong, Certificates.serverPin] }
      let none = try get(server) { $0.pins = [wrong] }
      #expect(right.response?.text == "secret")
      #expect(oneOfTwo.response?.text == "secret")
      #expect(none.failure?.kind == .pin)
    }
  }

  @Test func `a resumed session needs no certificate, also in the next generation`() throws {
    let server = TestServer(tls: true) { .sendAndClose(response("\($0.connection) \($0.isResumed)")) }
    defer { server.stop() }
    let file = TemporaryFile(Certificates.authority)
    let texts = try withOrigin(server, scheme: .https) { options in
      options.caFile = file.path
      options.usesHTTP2 = false
    } body: { origin in
      var texts = [await origin.get().response?.text, await origin.get().response?.text]
      origin.renewConnections()
      texts.append(await origin.get().response?.text)
      return texts
    }
    #expect(texts == ["0 false", "1 true", "2 true"])
  }

  /// libcurl 7.88 resumes none over HTTP/2.
  @Test func `a session over HTTP/2 is resumed in the next generation`() throws {
    let (texts, _) = try withHTTP2 {
      .send("\($0.connection) \($0.isResumed)")
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<3 {
        texts.append(await origin.get().response?.text)
        origin.renewConnections()
      }
      return texts
    }
    #expect(Stack.current == .curl || texts == ["0 false", "1 true", "2 true"])
  }

  @Test func `a session over HTTP/2 is resumed after the server has ended the connection`() throws {
    let (texts, _) = try withHTTP2 {
      .acts([.respond("\($0.connection) \($0.isResumed)"), .sayGoodbyeAndClose])
    } body: { origin in
      var texts: [String?] = []
      for _ in 0..<3 {
        texts.append(await origin.get().response?.text)
        _ = await origin.loop.until { origin.connectionCount == 0 }
      }
      return texts
    }
    #expect(Stack.current == .curl || texts == ["0 false", "1 true", "2 true"])
  }

  @Test func `a server without TLS is refused`() throws {
    let server = TestServer { _ in .sendAndClose(response("clear")) }
    defer { server.stop() }
    // The handshake's octets end in no empty line, so the server never answers them.
    let file = TemporaryFile(Certificates.authority)
    let result = try withOrigin(server, scheme: .https) { options in
      options.caFile = file.path
    } body: {
      await $0.get(timeout: .milliseconds(100))
    }
    #expect(result.failure?.kind == .timeout)
  }

  @Test func `a CA file is read again only when it has changed`() throws {
    try serving { server in
      let file = TemporaryFile(Certificates.otherAuthority)
      let use = { (options: inout HTTPClientOptions) in options.caFile = file.path }
      let before = try withOrigin(server, scheme: .https, use) { await $0.get() }
      file.rewrite(Certificates.authority + Certificates.otherAuthority)
      let after = try withOrigin(server, scheme: .https, use) { await $0.get() }
      #expect(before.failure?.kind == .certificate)
      #expect(after.response?.text == "secret")
    }
  }
}
