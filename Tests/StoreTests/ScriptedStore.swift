// ScriptedStore.swift -- a store on a free loopback port, on the test's own loop, that does what a script says.

import EventLoop
import Glibc
import Store
import TestSupport
import Testing

/// What a scripted store does with one command.
enum ScriptedReply {
  /// Sends these octets.
  case octets(String)
  /// Sends nothing.
  case nothing
  /// Closes the connection.
  case close

  static let ok = ScriptedReply.octets("+OK\r\n")
  static let pong = ScriptedReply.octets("+PONG\r\n")
  static let null = ScriptedReply.octets("$-1\r\n")
  static func error(_ text: String) -> ScriptedReply { .octets("-\(text)\r\n") }
  static func bulk(_ text: String) -> ScriptedReply { .octets("$\(text.utf8.count)\r\n\(text)\r\n") }
}

/// A server that reads commands. On the loop's thread only.
final class ScriptedStore {
  /// Answers one command, its words as text.
  var script: ([String]) -> ScriptedReply
  /// All commands that came.
  private(set) var commands: [[String]] = []
  /// How many connections were accepted.
  private(set) var accepted = 0
  let port: UInt16
  private let host: [UInt8]

  /// How many connections are open.
  var connectionCount: Int { connections.count }
  var settings: StoreSettings {
    var settings = StoreSettings(at: .tcp(host: "127.0.0.1", port: port))
    // The machine may be busy; what has to be late never comes, and what has to come does not wait for it.
    settings.fleet.timeout = .seconds(5)
    settings.fleet.connectTimeout = .seconds(10)
    return settings
  }

  private let loop: EventLoop
  private var listener: WatchedSocket?
  private var connections: [Int32: (socket: WatchedSocket, reader: RESPReader)] = [:]

  /// Answers PING unless the script does; everything else by the script.
  ///
  /// - Parameters:
  ///   - host: an address of loopback.
  ///   - port: 0 for a free one.
  init(
    on loop: EventLoop, host: [UInt8] = [127, 0, 0, 1], port: UInt16 = 0,
    script: @escaping ([String]) -> ScriptedReply = ScriptedStore.usual
  ) throws {
    self.loop = loop
    self.host = host
    self.script = script
    let (descriptor, port) = try #require(ScriptedStore.listener(host, port: port))
    self.port = port
    accept(on: descriptor)
  }

  static func usual(_ words: [String]) -> ScriptedReply {
    switch words[0] {
    case "PING": .pong
    case "GET": words[1].hasPrefix("missing") ? .null : .bulk(words[1])
    case "INCRBY", "DEL": .octets(":1\r\n")
    default: .ok
    }
  }

  /// Refuses connections from now on, and closes those that are open.
  func stop() {
    listener = nil
    closeConnections()
  }

  /// Listens again.
  func resume() {
    accept(on: ScriptedStore.listener(host, port: port)!.descriptor)
  }

  func closeConnections() { connections = [:] }

  /// Sends octets on every connection.
  func send(_ text: String) { for descriptor in connections.keys { send(Array(text.utf8), to: descriptor) } }

  private func accept(on descriptor: Int32) {
    listener = WatchedSocket(descriptor, on: loop) { [unowned self] in
      guard let descriptor = listener?.accept() else { return }
      accepted += 1
      let socket = WatchedSocket(descriptor, on: loop) { [unowned self] in receive(descriptor) }
      connections[descriptor] = (socket, RESPReader(limit: 1 << 20))
    }
  }

  private func receive(_ descriptor: Int32) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    guard count > 0 else {
      connections[descriptor] = nil
      return
    }
    connections[descriptor]?.reader.append(buffer[..<count])
    while case .array(let words)? = try? connections[descriptor]?.reader.next() {
      let texts = words.map { word in
        guard case .bulk(let octets) = word else { return "?" }
        return String(decoding: octets, as: UTF8.self)
      }
      commands.append(texts)
      switch script(texts) {
      case .octets(let text): send(Array(text.utf8), to: descriptor)
      case .nothing: break
      case .close: connections[descriptor] = nil
      }
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

  private static func listener(_ host: [UInt8], port: UInt16) -> (descriptor: Int32, port: UInt16)? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var reuse: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
    let address = SocketAddress(octets: host, port: port)!
    guard address.withSockaddr({ bind(descriptor, .init(__sockaddr__: $0), $1) }) == 0, listen(descriptor, 16) == 0
    else { return nil }
    return (descriptor, SocketAddress(boundTo: descriptor)!.port)
  }
}
