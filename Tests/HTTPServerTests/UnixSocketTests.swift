// UnixSocketTests.swift -- the server on the path of a Unix socket.

import EventLoop
import Glibc
import HTTPServer
import HTTPTestSupport
import TestSupport
import Testing

extension TemporaryFolder {
  /// Where a socket can be.
  fileprivate var socket: String { path(of: "socket") }
}

private func mode(of path: String) -> mode_t? {
  var status = stat()
  return lstat(path, &status) == 0 ? status.st_mode : nil
}

@Suite struct `A Unix socket` {
  @Test func `a Unix socket serves its user only, and is removed with the server`() throws {
    let folder = TemporaryFolder()
    let loop = try EventLoop()
    var server: HTTPServer? = HTTPServer(on: loop) { request, reply in
      reply.send(status: request.peer == nil ? 200 : 500)
    }
    try server!.listen(unixPath: folder.socket, mode: 0o660)
    #expect(mode(of: folder.socket) == S_IFSOCK | 0o660)
    let thread = LoopThread(running: loop)
    #expect(RawClient(toPath: folder.socket)?.exchange("GET", "/")?.status == 200)
    thread.join()
    server = nil
    #expect(mode(of: folder.socket) == nil)
  }

  @Test func `a dead process's socket is replaced, a living one's is not`() throws {
    let folder = TemporaryFolder()
    let loop = try EventLoop()
    let leftover = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: folder.socket.utf8) }
    let outcome = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(leftover, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(outcome == 0)
    close(leftover)
    let first = HTTPServer(on: loop) { _, reply in reply.send(status: 200) }
    try first.listen(unixPath: folder.socket)
    let second = HTTPServer(on: loop) { _, reply in reply.send(status: 200) }
    #expect(throws: HTTPServerError.pathInUse(folder.socket)) { try second.listen(unixPath: folder.socket) }
    withExtendedLifetime(first) {}
  }

  @Test func `a file of another kind is not changed`() throws {
    let folder = TemporaryFolder()
    close(creat(folder.socket, 0o600))
    let server = try HTTPServer(on: EventLoop()) { _, reply in reply.send(status: 200) }
    #expect(throws: HTTPServerError.pathOccupied(folder.socket, by: "a plain file")) {
      try server.listen(unixPath: folder.socket)
    }
    #expect(mode(of: folder.socket).map { $0 & S_IFMT } == S_IFREG)
  }

  @Test(arguments: ["", String(repeating: "x", count: 108)])
  func `a path that does not fit is refused`(path: String) throws {
    let server = try HTTPServer(on: EventLoop()) { _, reply in reply.send(status: 200) }
    #expect(throws: HTTPServerError.unusablePath(path)) { try server.listen(unixPath: path) }
  }
}
