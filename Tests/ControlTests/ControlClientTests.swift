// ControlClientTests.swift -- the client without a daemon, with other programs, and with broken answers.

import EventLoop
import Glibc
import HTTPServer
import HTTPTestSupport
import TestSupport
import Testing

@testable import Control

/// A server on a path that sends one text to its first client and closes, or sends nothing.
private final class Stranger {
  let folder = TemporaryFolder()
  private let descriptor: Int32

  /// - Parameter says: what goes into the first connection; nil accepts none.
  init(says text: String?) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: folder.socket.utf8) }
    let outcome = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(outcome == 0 && listen(descriptor, 8) == 0)
    guard let text else { return }
    let answer = Answer(descriptor, Array(text.utf8))
    var thread = pthread_t()
    try #require(pthread_create(&thread, nil, serveOne, Unmanaged.passRetained(answer).toOpaque()) == 0)
    pthread_detach(thread)
  }

  deinit { close(descriptor) }
}

private final class Answer {
  let descriptor: Int32
  let octets: [UInt8]

  init(_ descriptor: Int32, _ octets: [UInt8]) { (self.descriptor, self.octets) = (dup(descriptor), octets) }
}

private func serveOne(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  let answer = Unmanaged<Answer>.fromOpaque(context!).takeRetainedValue()
  let connection = accept(answer.descriptor, .init(__sockaddr__: nil), nil)
  var block = [UInt8](repeating: 0, count: 4096)
  _ = recv(connection, &block, block.count, 0)
  _ = send(connection, answer.octets, answer.octets.count, Int32(MSG_NOSIGNAL))
  close(connection)
  close(answer.descriptor)
  return nil
}

@Suite struct `A control client` {
  @Test func `the control client distinguishes a missing daemon from a missing permission`() throws {
    let folder = TemporaryFolder()
    func error(_ path: String) -> ControlClientError? {
      do throws(ControlClientError) {
        _ = try ControlClient(path: path).providers(.text)
        return nil
      } catch { return error }
    }
    #expect(error(folder.socket) == .notRunning(path: folder.socket, errno: ENOENT))
    close(creat(folder.socket, 0o600))
    #expect(error(folder.socket) == .notRunning(path: folder.socket, errno: ECONNREFUSED))
    #expect(error("") == .unusablePath(""))
    let long = "/" + String(repeating: "x", count: 107)
    #expect(error(long) == .unusablePath(long))
    #expect(error(folder.socket)?.description.contains("is it running") == true)
    #expect(ControlClientError.notPermitted(path: "/p").description.contains("control.group"))
  }

  @Test(arguments: [
    "", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
    "HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "\r\n\r\n", String(repeating: "x", count: 5_000),
  ]) func `the control client rejects the answers of other programs`(_ text: String) throws {
    let stranger = try Stranger(says: text)
    #expect(throws: ControlClientError.unreadable(path: stranger.folder.socket)) {
      try ControlClient(path: stranger.folder.socket).providers(.text)
    }
  }

  @Test func `the control client shows no control characters of another program`() throws {
    let stranger = try Stranger(says: "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n\u{1B}[2J\n")
    #expect(throws: ControlClientError.refused("status 403")) {
      try ControlClient(path: stranger.folder.socket).providers(.text)
    }
  }

  @Test func `a daemon that does not say which file it reads, or says it with control characters`() throws {
    let earlier = try Stranger(says: "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n?\n")
    #expect(try ControlClient(path: earlier.folder.socket).file() == nil)
    let strange = try Stranger(says: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n/\u{1B}[2\n")
    #expect(throws: ControlClientError.unreadable(path: strange.folder.socket)) {
      try ControlClient(path: strange.folder.socket).file()
    }
  }

  @Test func `the control client does not wait for a silent server`() throws {
    let stranger = try Stranger(says: nil)
    #expect(throws: ControlClientError.tooLate(path: stranger.folder.socket)) {
      try ControlClient(path: stranger.folder.socket, patience: .milliseconds(20)).providers(.text)
    }
  }

  @Test func `the control client does not wait for a server that accepts no more connections`() throws {
    let stranger = try Stranger(says: nil)
    let path = stranger.folder.socket
    // One more than its queue holds, which has 8.
    let waiting = (0...8).compactMap { _ in try? ControlClient(path: path).connected() }
    defer { for descriptor in waiting { close(descriptor) } }
    #expect(throws: ControlClientError.tooLate(path: path)) {
      try ControlClient(path: path, patience: .milliseconds(20)).providers(.text)
    }
  }

  @Test func `the control client stops waiting when its descriptor becomes readable`() throws {
    let stranger = try Stranger(says: nil)
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(write(ends[1], "x", 1) == 1)
    #expect(throws: ControlClientError.interrupted) {
      try ControlClient(path: stranger.folder.socket, interruption: ends[0]).providers(.text)
    }
  }

  @Test func `the control client rejects the statistics of another program`() throws {
    for body in ["", "httpdnsd-top\t1\n", "httpdnsd-top\t2\ntime\t1\n"] {
      let stranger = try Stranger(says: "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      #expect(throws: ControlClientError.unreadable(path: stranger.folder.socket)) {
        try ControlClient(path: stranger.folder.socket).sample()
      }
    }
  }

  @Test func `the control client reads the answer between unknown header fields`() throws {
    let octets = Array("HTTP/1.1 200 OK\r\nDate: x\r\nCONTENT-length:  3\r\nX: y: z\r\n\r\na\r\n".utf8)
    let (status, fields, body) = try #require(ControlClient.parse(octets))
    #expect(status == 200 && body == "a\r\n" && fields["x"] == "y: z")
  }
}

@Suite struct `The socket's group` {
  @Test func `the socket's group is found by its name or by its number`() {
    let folder = TemporaryFolder()
    let file = folder.write(Array("root:x:0:\ndns:x:4711:alice,bob\n".utf8), to: "group")
    #expect(SocketGroup("dns", in: file)?.number == 4711)
    #expect(SocketGroup("alice", in: file) == nil)
    #expect(SocketGroup("12", in: file)?.number == 12)
    #expect(SocketGroup("dns", in: "\(folder.path)/none") == nil)
  }

  @Test func `setting the socket's group succeeds or returns the reason`() throws {
    let folder = TemporaryFolder()
    close(creat(folder.socket, 0o600))
    let own = try #require(SocketGroup("\(getegid())"))
    #expect(own.take(folder.socket) == nil)
    #expect(own.take("\(folder.path)/none") == ENOENT)
  }
}
