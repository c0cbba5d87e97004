// RedisServer.swift -- a real store: Debian's redis-server, on a port of its own, without files.

import Foundation

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
  init(in lab: Lab, number: Int = 0, port: UInt16? = nil, _ more: [String] = [], credentials: [String] = []) throws {
    folder = "\(lab.folder.path)/redis-\(number)"
    socket = "\(folder)/socket"
    self.credentials = credentials
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    reserved = try port == nil ? Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0), reusing: true) : nil
    self.port = port ?? reserved!.address.port
    process = try lab.start(
      [
        try RedisServer.program(folder), "--port", "\(self.port)", "--unixsocket", socket, "--save", "", "--dir",
        folder,
        "--maxmemory-policy", "volatile-lru",
      ] + more)
    try eventually("the store answers", within: .seconds(20)) { try? command("PING") == "PONG" ? true : nil }
  }

  /// Debian's package of tools has the server under another name; the package with the server would start it as a service.
  private static func program(_ folder: String) throws -> String {
    let link = "\(folder)/redis-server"
    if !FileManager.default.fileExists(atPath: link) {
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/usr/bin/redis-check-rdb")
    }
    return link
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
