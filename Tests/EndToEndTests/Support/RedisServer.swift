// RedisServer.swift -- a real store: Redis or Valkey, on a port of its own, without files.

import Foundation
import TestSupport

/// A running store.
final class RedisServer {
  let process: ChildProcess
  let port: UInt16
  /// The path of its Unix socket.
  let socket: String
  private let folder: String
  // Bound and does not listen: only a server that asks for this port, with SO_REUSEADDR, can bind it as well.
  private let reserved: Socket?
  private let credentials: [String]

  /// - Parameters:
  ///   - more: further options of the server.
  ///   - credentials: options by which `command` shows who it is.
  init(
    _ server: StoreServer = .redis, in lab: Lab, number: Int = 0, port: UInt16? = nil, _ more: [String] = [],
    credentials: [String] = []
  ) throws {
    folder = "\(lab.folder.path)/store-\(number)"
    socket = "\(folder)/socket"
    self.credentials = credentials
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    reserved = try port == nil ? Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0), reusing: true) : nil
    self.port = port ?? reserved!.address.port
    process = try lab.start(
      [
        // On the reserved address only: on another one, a connection that has just ended may still have the port.
        server.program(in: folder), "--bind", "127.0.0.1", "--port", "\(self.port)", "--unixsocket", socket,
        "--save", "", "--dir", folder, "--maxmemory-policy", "volatile-lru",
      ] + more)
    do {
      try eventually("the store answers", within: .seconds(20)) { try? command("PING") == "PONG" ? true : nil }
    } catch {
      throw Failure("\(error): \(process.text(.output))")
    }
  }

  /// What redis-cli prints for a command.
  @discardableResult
  func command(_ words: String...) throws -> String {
    let (ending, output, error) = try ChildProcess.run(["redis-cli", "-s", socket] + credentials + words)
    guard ending == .exited(0) else { throw Failure("redis-cli \(words): \(output) \(error)") }
    return output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  var url: String { "redis://127.0.0.1:\(port)/0" }
}
