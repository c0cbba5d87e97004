// TCPFramingProperty.swift -- whatever the split, a stream's messages arrive whole and in order, and so do the answers.

import EventLoop
import Glibc
import Listener

/// A client's connection at the other end of a pair of sockets. The input is an octet that says how the stream is split
/// and when queries are answered, and the stream.
public final class TCPFramingProperty: Property {
  /// The fuzz target.
  public static let name = "TCPFraming"

  private static let limits = TCPLimits(connections: 1, perClient: 1, idle: .seconds(10))
  private let loop: EventLoop

  /// With whatever it needs set up.
  public init() {
    do { loop = try EventLoop() } catch { preconditionFailure("\(error)") }
  }

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let mode = input.first else { return }
    let stream = input.dropFirst()
    let talk = Talk(loop, TCPFramingProperty.limits, isPatient: mode & 0x80 != 0)
    let piece = Int(mode & 0x7F)
    var rest = stream
    while !rest.isEmpty {
      // A hundred pieces of a few octets meet every place of a frame; a long stream need not come in thousands.
      let isSplit = piece > 0 && stream.count - rest.count < 100 * piece
      let sent = rest.prefix(isSplit ? piece : 0x4000)
      guard talk.send(Array(sent)) else { break }
      rest = rest.dropFirst(sent.count)
      talk.turn()
    }
    talk.finish()
    let expected = frames(stream)
    try require(talk.messages.elementsEqual(expected.messages), "other messages than those in the stream")
    try require(!talk.isOpen, "a connection that stays open")
    let answers = talk.messages.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xFF)] + $0 }
    // The answers to what came before a broken frame may be lost with the connection.
    try require(
      expected.isSound && !talk.isPatient ? talk.received == answers : talk.received.count <= answers.count,
      "other answers than were given")
    if expected.isSound { try require(talk.received.count == answers.count, "answers are missing") }
  }

  /// The stream's messages by the letter of RFC 1035 section 4.2.2, up to one that is too short for a header.
  private func frames(_ stream: ArraySlice<UInt8>) -> (messages: [ArraySlice<UInt8>], isSound: Bool) {
    var messages: [ArraySlice<UInt8>] = []
    var rest = stream
    while rest.count >= 2 {
      let length = Int(rest.first!) << 8 | Int(rest.dropFirst().first!)
      guard length >= 12 else { return (messages, false) }
      guard rest.count >= 2 + length else { break }
      messages.append(rest.dropFirst(2).prefix(length))
      rest = rest.dropFirst(2 + length)
    }
    return (messages, true)
  }
}

/// A connection, its other end, and what passed between them.
private final class Talk {
  /// Whether queries are answered only when no more come, the last one first.
  let isPatient: Bool
  private(set) var messages: [ArraySlice<UInt8>] = []
  private(set) var received: [UInt8] = []
  private let loop: EventLoop
  private let peer: Int32
  private var held: [[UInt8]] = []
  private var connection: TCPConnection?

  init(_ loop: EventLoop, _ limits: TCPLimits, isPatient: Bool) {
    self.loop = loop
    self.isPatient = isPatient
    var pair: [Int32] = [-1, -1]
    let outcome = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0, &pair)
    precondition(outcome == 0, "no pair of sockets: errno \(errno)")
    peer = pair[1]
    connection = TCPConnection(
      pair[0], SocketAddress(text: "127.0.0.1:4242")!, nil, loop, TCPConnectionTable(limits: limits)
    ) { [unowned self] connection, message in accept(connection, message) }
  }

  deinit {
    connection?.close()
    close(peer)
  }

  var isOpen: Bool { connection?.isOpen ?? false }

  private func accept(_ connection: TCPConnection, _ message: UnsafeBufferPointer<UInt8>) {
    messages.append(Array(message)[...])
    if isPatient { held.append(Array(message)) } else { connection.send(message) }
  }

  /// Sends octets; false where the connection takes no more.
  func send(_ octets: [UInt8]) -> Bool {
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(peer, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0, errno == EAGAIN {
        turn()
        // The other end reads no more until it may answer.
        answerHeld()
        continue
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Lets the connection do what it can, and takes what it sends.
  func turn() {
    loop.turnOnce()
    var buffer = [UInt8](repeating: 0, count: 0x4000)
    while case let count = recv(peer, &buffer, buffer.count, 0), count > 0 { received += buffer[..<count] }
  }

  /// Sends FIN, and lets the connection end.
  func finish() {
    shutdown(peer, Int32(SHUT_WR))
    // 100 turns read more than the buffers hold.
    for _ in 0..<100 where isOpen {
      turn()
      answerHeld()
    }
    turn()
  }

  private func answerHeld() {
    let answered = held.reversed()
    held = []
    for message in answered { message.withUnsafeBufferPointer { connection?.send($0) } }
  }
}
