// Sessions.swift -- who may see names and act: codes that the control socket gives, and the tokens that they are exchanged for.
//
// A code is short-lived and works once, so that a printed URL is worth nothing afterwards. A token is kept by a browser
// alone; of it the daemon keeps a digest. Loop's thread only.

import Ciphers
import DNSWire
import EventLoop

/// The codes and sessions of the dashboard.
struct Sessions {
  /// A browser that has signed in.
  struct Session: Equatable {
    /// Differs from those of all other sessions.
    let number: UInt64
    /// The user of the control socket who asked for the code.
    let user: UInt32
    let end: BootInstant
    fileprivate let digest: [UInt8]

    static func == (left: Session, right: Session) -> Bool { left.number == right.number }
  }

  private struct Code {
    let digest: [UInt8]
    let user: UInt32
    let end: BootInstant
  }

  /// How long a code works.
  static let codeLife = Duration.seconds(60)
  /// How long a session lasts.
  static let sessionLife = Duration.seconds(12 * 3600)
  /// The most sessions, and the most codes; one more ends the oldest.
  static let most = 16
  /// The random octets of a code and of a token.
  private static let (codeOctets, tokenOctets) = (16, 32)

  private var codes: [Code] = []
  private var sessions: [Session] = []
  private var count: UInt64 = 0

  /// Makes a code for a user of the control socket.
  mutating func makeCode(for user: UInt32, now: BootInstant) -> String {
    let code = Sessions.secret(Sessions.codeOctets)
    codes.removeAll { $0.end <= now }
    if codes.count == Sessions.most { codes.removeFirst() }
    codes.append(Code(digest: Sessions.digest(code), user: user, end: now + Sessions.codeLife))
    return code
  }

  /// Exchanges a code for a token; nil if the code is wrong, used or too old. If there are too many sessions, the oldest ends.
  mutating func begin(with code: String, now: BootInstant) -> (token: String, session: Session)? {
    let digest = Sessions.digest(code)
    guard let place = codes.firstIndex(where: { Digest.areEqual($0.digest, digest) }) else { return nil }
    let found = codes.remove(at: place)
    guard found.end > now else { return nil }
    let token = Sessions.secret(Sessions.tokenOctets)
    sessions.removeAll { $0.end <= now }
    if sessions.count == Sessions.most { sessions.removeFirst() }
    count += 1
    let session = Session(
      number: count, user: found.user, end: now + Sessions.sessionLife, digest: Sessions.digest(token))
    sessions.append(session)
    return (token, session)
  }

  /// The session of a token; nil if there is none any more.
  func session(of token: String, now: BootInstant) -> Session? {
    let digest = Sessions.digest(token)
    return sessions.first { Digest.areEqual($0.digest, digest) }.flatMap { $0.end > now ? $0 : nil }
  }

  /// Whether a session still lasts.
  func has(_ session: Session, now: BootInstant) -> Bool { session.end > now && sessions.contains(session) }

  mutating func end(_ session: Session) { sessions.removeAll { $0 == session } }

  private static func secret(_ octets: Int) -> String { Base64URL.encode(RandomOctets.generate(count: octets)) }

  private static func digest(_ text: String) -> [UInt8] { Digest.sha256(Array(text.utf8)) }
}
