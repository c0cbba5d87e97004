// ControlClient.swift -- the other end of the control socket: one request, and what the daemon says to it.
//
// It blocks. What is at the other end need not be a daemon of this program: time and size are bounded.

import EventLoop
import Glibc

/// Why the daemon did not do what it was asked.
public enum ControlClientError: Error, Equatable {
  /// Nobody listens there, or nothing is there: errno.
  case notRunning(path: String, errno: Int32)
  /// The kernel does not let this user in.
  case notPermitted(path: String)
  /// The path is no path of a socket.
  case unusablePath(String)
  /// It did not answer in time.
  case tooLate(path: String)
  /// What answers is no daemon of this program.
  case unreadable(path: String)
  /// The daemon refuses the request, for this reason.
  case refused(String)
}

extension ControlClientError: CustomStringConvertible {
  /// One line for a person: what is wrong, and what would help.
  public var description: String {
    switch self {
    case .notRunning(let path, let number):
      "the daemon cannot be reached by \(path): \(String(cString: strerror(number))); "
        + "is it running, and is this its control.socket?"
    case .notPermitted(let path):
      "no permission to use \(path): it is for root, the daemon's user and the group control.group"
    case .unusablePath(let path): "\(path) cannot be the path of a socket: 1 to 107 octets are allowed"
    case .tooLate(let path): "no answer by \(path) in time; is the daemon busy, or is it another program's socket?"
    case .unreadable(let path): "what answers by \(path) is not httpdnsd"
    case .refused(let reason): "the daemon refuses: \(reason)"
    }
  }
}

/// Asks the daemon behind a socket.
public struct ControlClient: Sendable {
  private let path: String
  private let patience: Duration

  /// The longest answer, in octets: several times what a daemon with many providers says.
  private static let longestAnswer = 1 << 20

  /// - Parameter patience: how long an answer may take in all.
  public init(path: String, patience: Duration = .seconds(10)) {
    self.path = path
    self.patience = patience
  }

  /// Forgets what is known of those names; of all where there are none.
  ///
  /// - Returns: what the daemon tells, in whole lines.
  public func flush(_ names: [String], below: Bool, _ form: ControlForm) throws(ControlClientError) -> String {
    try ask("POST", "/flush\(below ? "?below" : "")", form, body: names.map { "\($0)\n" }.joined())
  }

  /// How the providers fare.
  ///
  /// - Returns: what the daemon tells, in whole lines.
  public func providers(_ form: ControlForm) throws(ControlClientError) -> String {
    try ask("GET", "/providers", form)
  }

  private func ask(
    _ method: String, _ target: String, _ form: ControlForm, body: String = ""
  ) throws(ControlClientError) -> String {
    let deadline = BootInstant.now + patience
    let descriptor = try connected()
    defer { close(descriptor) }
    let head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: \(form.contentType)\r\n"
    // A daemon that refuses the request may have closed its end by now; its reason can be read all the same.
    send(Array("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8), to: descriptor)
    let answer = try read(from: descriptor, by: deadline)
    guard let (status, content) = ControlClient.parse(answer) else { throw .unreadable(path: path) }
    guard status == 200 else {
      // Only text that a daemon of ours can have sent is shown on a terminal.
      let reason = content.prefix { $0 != "\n" }.unicodeScalars.allSatisfy { (0x20...0x7E).contains($0.value) }
      throw reason && content.hasSuffix("\n") && content.utf8.count < 256
        ? .refused("\(content.prefix { $0 != "\n" })") : .refused("status \(status)")
    }
    return content
  }

  private func connected() throws(ControlClientError) -> Int32 {
    var address = sockaddr_un()
    let octets = Array(path.utf8)
    guard !octets.isEmpty, octets.count < MemoryLayout.size(ofValue: address.sun_path), !octets.contains(0) else {
      throw .unusablePath(path)
    }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: octets) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .notRunning(path: path, errno: errno) }
    var limit = timeval(tv_sec: Int(patience.components.seconds), tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    let outcome = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, .init(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard outcome != 0 else { return descriptor }
    let number = errno
    close(descriptor)
    switch number {
    case EACCES, EPERM: throw .notPermitted(path: path)
    case EAGAIN: throw .tooLate(path: path)
    default: throw .notRunning(path: path, errno: number)
    }
  }

  private func send(_ octets: [UInt8], to descriptor: Int32) {
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Everything until the other end closes.
  private func read(from descriptor: Int32, by deadline: BootInstant) throws(ControlClientError) -> [UInt8] {
    var octets: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 16_384)
    while true {
      let left = (deadline - BootInstant.now).nanoseconds / 1_000_000
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard left > 0, poll(&entry, 1, Int32(clamping: left)) > 0 else { throw .tooLate(path: path) }
      let count = recv(descriptor, &block, block.count, 0)
      guard count > 0 else { return octets }
      octets += block[..<count]
      guard octets.count <= ControlClient.longestAnswer else { throw .unreadable(path: path) }
    }
  }

  /// The status and the body of a complete response; nil for anything else.
  static func parse(_ octets: [UInt8]) -> (status: Int, body: String)? {
    guard let end = octets.indices.first(where: { octets[$0...].starts(with: Array("\r\n\r\n".utf8)) }),
      let head = String(validating: octets[..<end], as: UTF8.self),
      let body = String(validating: octets[(end + 4)...], as: UTF8.self)
    else { return nil }
    var lines = head.split(separator: "\r\n")[...]
    guard let words = lines.popFirst()?.split(separator: " "), words.count >= 2, words[0].hasPrefix("HTTP/1."),
      let status = Int(words[1])
    else { return nil }
    let length = lines.lazy.compactMap { line -> Int? in
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
      return Int(parts[1].drop { $0 == " " })
    }.first
    guard length == octets.count - end - 4 else { return nil }
    return (status, body)
  }
}
