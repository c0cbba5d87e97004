// ServiceManager.swift -- a test in systemd's place: sockets that it holds, messages that it gets, threads that it freezes.

import Foundation
import Testing

/// Sockets at one address that outlive the daemons that serve them.
final class HeldSockets {
  let udp: Socket
  let tcp: Socket
  /// The address of both.
  let address: Address

  init() throws {
    (udp, tcp) = try Socket.pair()
    address = udp.address
    guard listen(tcp.descriptor, 128) == 0 else { throw Failure("cannot listen") }
  }

  /// Gives queries that wait as much room as the unit does; false where the privilege for that is missing.
  func makeRoom() -> Bool { udp.setReceiveBuffer(16 << 20) }

  /// What a daemon inherits, in systemd's order.
  var descriptors: [Int32] { [udp.descriptor, tcp.descriptor] }
}

extension Socket {
  /// Sets the room for what has not been read, past the system's bound; false where the privilege is missing.
  func setReceiveBuffer(_ octets: Int32) -> Bool {
    var octets = octets
    return setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &octets, socklen_t(MemoryLayout<Int32>.size)) == 0
  }
}

/// What the clock says now that systemd compares the beginning of a reload with.
func monotonicMicroseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}

/// Where a daemon reports to.
final class NotifySocket {
  /// `NOTIFY_SOCKET`.
  let path: String
  private let descriptor: Int32

  init(in lab: Lab) throws {
    path = "\(lab.folder.path)/notify"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let bound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard bound == 0 else { throw Failure("cannot bind \(path): \(String(cString: strerror(errno)))") }
  }

  deinit { close(descriptor) }

  /// The lines of the next message; nil where none comes in time.
  func receive(within duration: Duration = .seconds(10)) -> [String]? {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&entry, 1, Deadline(duration).milliseconds) > 0 else { return nil }
    var octets = [UInt8](repeating: 0, count: 4096)
    let count = recv(descriptor, &octets, octets.count, 0)
    return count < 0 ? nil : String(decoding: octets[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// The next message that has a line that begins so.
  func receive(_ beginning: String, within duration: Duration = .seconds(10)) -> [String]? {
    let deadline = Deadline(duration)
    while let lines = receive(within: deadline.remaining) {
      if lines.contains(where: { $0.hasPrefix(beginning) }) { return lines }
    }
    return nil
  }
}

extension Lab {
  /// Starts a daemon as systemd does: with sockets, and the process's own number in the environment.
  func activated(
    _ configuration: String, _ descriptors: [Int32], names: [String] = [], environment: [String: String] = [:],
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Daemon {
    try daemon(
      configuration, environment: environment.merging(HeldSockets.variables(descriptors, names)) { $1 },
      prefix: HeldSockets.launcher, descriptors: descriptors, sourceLocation: sourceLocation)
  }
}

extension HeldSockets {
  /// Becomes the program that stands behind it, as the process that the variables are for.
  static let launcher = ["sh", "-c", "export LISTEN_PID=$$; exec \"$@\"", "sh"]

  static func variables(_ descriptors: [Int32], _ names: [String]) -> [String: String] {
    var variables = ["LISTEN_FDS": "\(descriptors.count)"]
    if !names.isEmpty { variables["LISTEN_FDNAMES"] = names.joined(separator: ":") }
    return variables
  }
}

extension Daemon {
  /// Its threads with their names, the main one first.
  var threads: [(id: Int, name: String)] {
    let folder = "/proc/\(process.pid)/task"
    let ids = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap { Int($0) }.sorted()
    return ids.compactMap { id in
      (try? String(contentsOfFile: "\(folder)/\(id)/comm", encoding: .utf8)).map {
        (id, $0.split(separator: "\n")[0].description)
      }
    }
  }
}

/// A thread of another program that stands still, until it is let go.
final class FrozenThread {
  private let process: ChildProcess

  init(_ id: Int, in lab: Lab) throws {
    process = try lab.start([Programs.threadFreezer(), "\(id)"])
    try process.wait(for: "frozen", in: .output) { $0.contains("frozen") ? true : nil }
  }

  /// Lets it go on.
  func thaw() throws {
    process.signal(SIGTERM)
    _ = try process.waitForEnd()
  }
}
