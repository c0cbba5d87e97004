// RawClient.swift -- a blocking socket that speaks just enough HTTP/1.1 to see what a server really sends.

import CEvent
import EventLoop
import Glibc

/// What a server sent.
public struct RawResponse: Sendable {
  /// The status of the first line.
  public let status: Int
  /// The header section as text, without its first line.
  public let header: String
  /// The body, as long as Content-Length says.
  public let body: [UInt8]

  /// The body as text.
  public var text: String { String(decoding: body, as: UTF8.self) }

  /// The value of a field whose name is spelled so.
  public func field(_ name: String) -> String? {
    let line = header.split(separator: "\r\n").first { $0.hasPrefix("\(name): ") }
    return line.map { String($0.dropFirst(name.utf8.count + 2)) }
  }
}

/// How a connection ended.
public enum RawEnd: Equatable, Sendable {
  case closed, reset, timeout
}

/// One connection; no call waits longer than ten seconds.
public final class RawClient {
  private let descriptor: Int32
  private var received: [UInt8] = []

  /// Connects over TCP; nil without a listener.
  public convenience init?(to address: SocketAddress) {
    self.init(family: address.family) { descriptor in
      address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    }
  }

  /// Connects to a Unix socket; nil without a listener.
  public convenience init?(toPath path: String) {
    self.init(family: AF_UNIX) { descriptor in
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
    }
  }

  private init?(family: Int32, connect: (Int32) -> Int32) {
    descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    guard connect(descriptor) == 0 else { return nil }
  }

  deinit { Glibc.close(descriptor) }

  /// Sends text as it is.
  public func send(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Sends as much text as the kernel takes at once.
  public func sendWhatFits(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Says that nothing more is sent.
  public func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Whether the other side has reset the connection.
  public var isReset: Bool {
    var entry = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLERR | POLLHUP) != 0
  }

  /// Whether exactly this text comes next.
  public func read(_ text: String) -> Bool {
    let wanted = Array(text.utf8)
    while received.count < wanted.count { if fill() != nil { return false } }
    defer { received.removeFirst(wanted.count) }
    return received.starts(with: wanted)
  }

  /// Sends a request with a Host field, and reads its response; nil where none comes.
  public func exchange(_ method: String = "GET", _ target: String, header: String = "", body: String = "")
    -> RawResponse?
  {
    let length = body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n"
    send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n\(header)\(length)\r\n\(body)")
    return response(toHead: method == "HEAD")
  }

  /// The next response; nil where the connection ends or nothing comes before it is complete.
  public func response(toHead: Bool = false) -> RawResponse? {
    let separator = Array("\r\n\r\n".utf8)
    var headerEnd: Int?
    while headerEnd == nil {
      headerEnd = received.indices.first { received[$0...].starts(with: separator) }
      if headerEnd == nil, fill() != nil { return nil }
    }
    let head = String(decoding: received[..<headerEnd!], as: UTF8.self)
    let lineEnd = head.range(of: "\r\n")?.lowerBound ?? head.endIndex
    let words = head[..<lineEnd].split(separator: " ")
    guard words.count >= 2, let status = Int(words[1]) else { return nil }
    let partial = RawResponse(status: status, header: String(head[lineEnd...]), body: [])
    let length = toHead ? 0 : partial.field("Content-Length").flatMap { Int($0) } ?? 0
    let bodyStart = headerEnd! + separator.count
    while received.count < bodyStart + length { if fill() != nil { return nil } }
    let body = Array(received[bodyStart..<(bodyStart + length)])
    received.removeFirst(bodyStart + length)
    return RawResponse(status: status, header: partial.header, body: body)
  }

  /// Reads until the connection ends, and says how it did.
  public func end() -> RawEnd {
    while true { if let end = fill() { return end } }
  }

  /// Reads what is there; not nil where nothing more comes.
  private func fill() -> RawEnd? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count <= 0 else {
      received += buffer[..<count]
      return nil
    }
    return count == 0 ? .closed : errno == ECONNRESET ? .reset : .timeout
  }
}

extension String {
  fileprivate func range(of text: String) -> Range<String.Index>? {
    let wanted = Array(text.utf8)
    let found = utf8.indices.first { utf8[$0...].starts(with: wanted) }
    return found.map { $0..<utf8.index($0, offsetBy: wanted.count) }
  }
}
