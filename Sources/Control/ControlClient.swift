// ControlClient.swift -- the client of the control socket: sends one request and reads the answer.
//
// It blocks. Time and size are bounded, because the peer may not be httpdnsd.

import EventLoop
import Glibc
import HTTPMessage
import HTTPServer

/// Why a request to the daemon failed.
public enum ControlClientError: Error, Equatable {
  /// No process listens there, or the path does not exist; with errno.
  case notRunning(path: String, errno: Int32)
  /// This user may not open the socket.
  case notPermitted(path: String)
  /// The path is empty, too long or contains a zero octet.
  case unusablePath(String)
  /// There was no answer in time.
  case tooLate(path: String)
  /// The answer is not one of httpdnsd.
  case unreadable(path: String)
  /// The daemon refused the request, for this reason.
  case refused(String)
  /// The descriptor `interruption` became readable.
  case interrupted
  /// The daemon closed a connection that it should have kept open.
  case closed(path: String)
}

extension ControlClientError: CustomStringConvertible {
  /// One line: what is wrong, and what to do.
  public var description: String {
    switch self {
    case .notRunning(let path, let number):
      "cannot reach the daemon at \(path): \(String(cString: strerror(number))); "
        + "is it running, and is this its control.socket?"
    case .notPermitted(let path):
      "no permission to use \(path): only root, the daemon's user and group, and the group control.group may"
    case .unusablePath(let path): "\(path) is not a valid socket path: 1 to 107 octets are allowed"
    case .tooLate(let path): "no answer from \(path) in time; is the daemon busy, or is it another program's socket?"
    case .unreadable(let path): "the answer from \(path) is not one of httpdnsd; is it another program's socket?"
    case .refused(let reason): "the daemon refuses: \(reason)"
    case .interrupted: "interrupted"
    case .closed(let path): "the daemon closed \(path): it stopped, or this reader was too slow"
    }
  }
}

/// The daemon's answer.
public struct ControlAnswer: Sendable, Equatable {
  /// Complete lines.
  public var content: String
  /// Whether nothing was found, or a part of the request failed.
  public var isIncomplete = false
}

/// Sends requests to the daemon behind a socket. All calls block.
public struct ControlClient: Sendable {
  let path: String
  let patience: Duration
  private let interruption: Int32?

  /// The longest answer, in octets: several times that of a daemon with a thousand names of ordinary length.
  private static let longestAnswer = 4 << 20

  /// - Parameters:
  ///   - patience: the time limit for a complete answer.
  ///   - interruption: a descriptor that ends the wait when it becomes readable.
  public init(path: String, patience: Duration = .seconds(10), interruption: Int32? = nil) {
    self.path = path
    self.patience = patience
    self.interruption = interruption
  }

  /// Sends one request and reads its answer.
  ///
  /// - Parameters:
  ///   - request: the command, which has the method and path.
  ///   - query: the query of the URL with its question mark, or an empty string.
  ///   - lines: the body.
  func ask<Request: ControlCommand>(
    _ request: Request.Type, query: String = "", _ form: ControlForm, lines: [String] = []
  ) throws(ControlClientError) -> ControlAnswer {
    try ask(request.method.rawValue, request.path + query, form, lines: lines)
  }

  private func ask(
    _ method: String, _ target: String, _ form: ControlForm, lines: [String]
  ) throws(ControlClientError) -> ControlAnswer {
    let body = lines.map { "\($0)\n" }.joined()
    let deadline = BootInstant.now + patience
    let descriptor = try connected()
    defer { close(descriptor) }
    let head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: \(form.contentType)\r\n"
    // A daemon that refuses the request may have closed its end already; its reason can still be read.
    send(Array("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8), to: descriptor)
    let answer = try read(from: descriptor, by: deadline)
    guard let (status, fields, content) = ControlClient.parse(answer) else { throw .unreadable(path: path) }
    guard status == 200 else { throw ControlClient.refusal(status, content) }
    let nothing = ControlHandler.nothing
    return ControlAnswer(content: content, isIncomplete: fields[nothing.name.lowercased()] == nothing.value)
  }

  /// A refusal with the daemon's reason. Text that httpdnsd cannot have sent is not shown on a terminal.
  static func refusal(_ status: Int, _ content: String) -> ControlClientError {
    let line = content.prefix { $0 != "\n" }
    let isPlain = line.unicodeScalars.allSatisfy { (0x20...0x7E).contains($0.value) }
    return .refused(isPlain && content.hasSuffix("\n") && content.utf8.count < 256 ? "\(line)" : "status \(status)")
  }

  func connected() throws(ControlClientError) -> Int32 {
    guard let address = SocketAddress(unixPath: path) else { throw .unusablePath(path) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .notRunning(path: path, errno: errno) }
    // At least a microsecond: zero would be no limit.
    let microseconds = Int(max(1, patience.nanoseconds / 1_000))
    var limit = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    let outcome = address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    guard outcome != 0 else { return descriptor }
    let number = errno
    close(descriptor)
    switch number {
    case EACCES, EPERM: throw .notPermitted(path: path)
    case EAGAIN: throw .tooLate(path: path)
    default: throw .notRunning(path: path, errno: number)
    }
  }

  func send(_ octets: [UInt8], to descriptor: Int32) {
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Reads until the peer closes the connection.
  private func read(from descriptor: Int32, by deadline: BootInstant) throws(ControlClientError) -> [UInt8] {
    var octets: [UInt8] = []
    while true {
      let block = try receive(from: descriptor, by: deadline)
      guard !block.isEmpty else { return octets }
      octets += block
      guard octets.count <= ControlClient.longestAnswer else { throw .unreadable(path: path) }
    }
  }

  /// The octets that arrive next; empty at the end.
  ///
  /// - Parameter deadline: nil to wait without a limit.
  /// - Throws: `.tooLate`, or `.interrupted` if `interruption` becomes readable.
  func receive(from descriptor: Int32, by deadline: BootInstant?) throws(ControlClientError) -> [UInt8] {
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let left = deadline.map { ($0 - BootInstant.now).nanoseconds / 1_000_000 }
      var entries = [descriptor, interruption ?? -1].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard left ?? 1 > 0 else { throw .tooLate(path: path) }
      let ready = poll(&entries, 2, left.map { Int32(clamping: $0) } ?? -1)
      // Interrupted by a signal. If the signal is to end the wait, the next poll finds its descriptor readable.
      if ready < 0, errno == EINTR { continue }
      guard ready > 0 else { throw .tooLate(path: path) }
      guard entries[1].revents == 0 else { throw .interrupted }
      let count = recv(descriptor, &block, block.count, 0)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      return Array(block[..<max(0, count)])
    }
  }

  /// The status, the fields by their lower-case names and the body of a complete response; nil for anything else.
  static func parse(_ octets: [UInt8]) -> (status: Int, fields: [String: String], body: String)? {
    guard let end = endOfHead(octets), let (status, fields) = head(octets[..<end]),
      let body = String(validating: octets[(end + 4)...], as: UTF8.self),
      fields["content-length"].flatMap({ Int($0) }) == octets.count - end - 4
    else { return nil }
    return (status, fields, body)
  }

  /// The end of a response's head, before the empty line; nil if that has not come.
  static func endOfHead(_ octets: [UInt8]) -> Int? {
    octets.indices.first { octets[$0...].starts(with: Array("\r\n\r\n".utf8)) }
  }

  /// The status of a response's head, and the fields by their lower-case names; nil for anything else.
  static func head(_ octets: ArraySlice<UInt8>) -> (status: Int, fields: [String: String])? {
    guard let head = String(validating: octets, as: UTF8.self) else { return nil }
    var lines = head.split(separator: "\r\n")[...]
    guard let words = lines.popFirst()?.split(separator: " "), words.count >= 2, words[0].hasPrefix("HTTP/1."),
      let status = Int(words[1])
    else { return nil }
    var fields: [String: String] = [:]
    for line in lines {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
    }
    return (status, fields)
  }
}
