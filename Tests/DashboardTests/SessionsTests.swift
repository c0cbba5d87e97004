// SessionsTests.swift -- codes work once and soon, sessions end in time.

import EventLoop
import Testing

@testable import Dashboard

@Suite final class `Sessions of the dashboard` {
  private let start = BootInstant(nanoseconds: 5_000_000_000)
  private var sessions = Sessions()

  /// Signs in.
  private func begin() throws -> (token: String, session: Sessions.Session) {
    let begun = sessions.begin(with: sessions.makeCode(for: 0, now: start), now: start)
    return try #require(begun)
  }

  private func refuses(_ code: String, at time: BootInstant) -> Bool {
    sessions.begin(with: code, now: time) == nil
  }

  @Test func `a code is exchanged once for a token, which knows its user`() throws {
    let code = sessions.makeCode(for: 1000, now: start)
    #expect(code.utf8.count == 22)
    let begun = sessions.begin(with: code, now: start + .seconds(59))
    let (token, session) = try #require(begun)
    #expect(token.utf8.count == 43 && session.user == 1000)
    #expect(refuses(code, at: start + .seconds(59)))
    #expect(sessions.session(of: token, now: start + .seconds(60)) == session)
    #expect(sessions.session(of: String(token.dropLast()), now: start) == nil)
    #expect(sessions.session(of: "", now: start) == nil)
  }

  @Test func `a code that is too old, or wrong, gives nothing`() {
    let code = sessions.makeCode(for: 0, now: start)
    #expect(refuses("", at: start))
    #expect(refuses(code + "A", at: start))
    #expect(refuses(code, at: start + Sessions.codeLife))
    #expect(refuses(code, at: start), "it was used up")
  }

  @Test func `a session lasts twelve hours, or until it is ended`() throws {
    let first = try begin()
    let second = try begin()
    #expect(sessions.has(first.session, now: start + .seconds(43_199)))
    #expect(!sessions.has(first.session, now: start + .seconds(43_200)))
    #expect(sessions.session(of: first.token, now: start + .seconds(43_200)) == nil)
    sessions.end(second.session)
    #expect(sessions.session(of: second.token, now: start) == nil && !sessions.has(second.session, now: start))
  }

  @Test func `of more than sixteen sessions the oldest ends`() throws {
    var tokens: [String] = []
    for _ in 0..<17 { tokens.append(try begin().token) }
    #expect(sessions.session(of: tokens[0], now: start) == nil)
    for token in tokens.dropFirst() { #expect(sessions.session(of: token, now: start) != nil) }
  }

  @Test func `of more than sixteen codes the oldest is worth nothing`() {
    let codes = (0..<17).map { _ in sessions.makeCode(for: 0, now: start) }
    #expect(Set(codes).count == 17)
    #expect(refuses(codes[0], at: start))
    #expect(!refuses(codes[1], at: start))
  }
}
