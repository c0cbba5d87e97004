// RESPReaderTests.swift -- replies in any split, malformed ones, and the time that parsing takes.

import Store
import TestSupport
import Testing

/// Replies as the protocol's description has them, and the values that they are.
private let vectors: [(octets: String, value: RESPValue)] = [
  ("+OK\r\n", .status("OK")), ("+\r\n", .status("")), ("-ERR unknown command\r\n", .error("ERR unknown command")),
  (":0\r\n", .integer(0)), (":1000\r\n", .integer(1000)), (":-1\r\n", .integer(-1)),
  (":9223372036854775807\r\n", .integer(.max)), (":-9223372036854775808\r\n", .integer(.min)),
  ("$5\r\nhello\r\n", bulk("hello")), ("$0\r\n\r\n", bulk("")), ("$4\r\n\r\n\r\n\r\n", bulk("\r\n\r\n")),
  ("$-1\r\n", .null), ("*-1\r\n", .null), ("*0\r\n", .array([])),
  ("*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n", .array([bulk("hello"), bulk("world")])),
  ("*3\r\n:1\r\n$-1\r\n+x\r\n", .array([.integer(1), .null, .status("x")])),
  (
    "*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+a\r\n-b\r\n",
    .array([.array([.integer(1), .integer(2), .integer(3)]), .array([.status("a"), .error("b")])])
  ),
  ("*2\r\n*0\r\n*1\r\n*0\r\n", .array([.array([]), .array([.array([])])])),
  ("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", nested(.integer(7), 6)),
]

/// Octets that are no reply, with the reason.
private let nonsense: [(octets: String, failure: RESPFailure)] = [
  ("HTTP/1.1 400 Bad Request\r\n", .type(0x48)), ("\r\n", .type(0x0D)), ("_\r\n", .type(0x5F)), ("%1\r\n", .type(0x25)),
  ("+OK\n", .lineEnd), ("+OK\rx", .lineEnd), ("-a\nb\r\n", .lineEnd), (":1\n", .lineEnd), ("$1\r\nab\r\n", .lineEnd),
  ("$1\r\na\rb", .lineEnd), ("$1\r\na\n", .lineEnd), ("$2\r\na\r\n", .lineEnd), ("$0\r\n$", .lineEnd),
  (":\r\n", .number), (":-\r\n", .number), (":+1\r\n", .number), (":01\r\n", .number), (":-0\r\n", .number),
  (":00\r\n", .number), (":1a\r\n", .number), (": 1\r\n", .number), (":1.0\r\n", .number), (":--1\r\n", .number),
  (":9223372036854775808\r\n", .number), (":-9223372036854775809\r\n", .number), (":99999999999999999999\r\n", .number),
  (":111111111111111111111", .number), ("$\r\n", .number), ("$+1\r\na\r\n", .number), ("$01\r\na\r\n", .number),
  ("$-0\r\n", .number), ("*\r\n", .number), ("*+1\r\n", .number), ("*01\r\n", .number), ("*x\r\n", .number),
  ("$-2\r\n", .length), ("*-2\r\n", .length), ("*4097\r\n", .length), ("*9223372036854775807\r\n", .length),
  ("$65537\r\n", .size), ("$9223372036854775807\r\n", .size),
  ("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*", .nesting), ("*2\r\n:1\r\n?", .type(0x3F)),
]

private func nested(_ value: RESPValue, _ depth: Int) -> RESPValue {
  depth == 0 ? value : .array([nested(value, depth - 1)])
}

/// What a reader makes of pieces: the values, and why it stopped if it did.
private func read(_ pieces: [[UInt8]], limit: Int = RESPReader.replyLimit) -> (
  values: [RESPValue], failure: RESPFailure?
) {
  var reader = RESPReader(limit: limit)
  var values: [RESPValue] = []
  for piece in pieces {
    reader.append(piece)
    do throws(RESPFailure) {
      while let value = try reader.next() { values.append(value) }
    } catch {
      return (values, error)
    }
  }
  return (values, nil)
}

@Suite struct `A RESP reader` {
  @Test func `a RESP reader takes each vector whole and octet by octet`() {
    for (text, value) in vectors {
      let octets = Array(text.utf8)
      #expect(read([octets]).values == [value], "\(text.debugDescription)")
      let apart = read(octets.map { [$0] })
      #expect(apart.values == [value] && apart.failure == nil, "\(text.debugDescription)")
      // Without its last octet it is not complete, and no nonsense.
      let cut = read([Array(octets.dropLast())])
      #expect(cut.values.isEmpty && cut.failure == nil, "\(text.debugDescription)")
    }
  }

  @Test func `a RESP reader takes all vectors in random splits`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<200 {
      let chosen = (0..<20).map { _ in vectors.randomElement(using: &random)! }
      var stream = chosen.flatMap { Array($0.octets.utf8) }[...]
      var pieces: [[UInt8]] = []
      while !stream.isEmpty {
        pieces.append(Array(stream.prefix(Int.random(in: 0...12, using: &random))))
        stream = stream.dropFirst(pieces.last!.count)
      }
      let result = read(pieces)
      #expect(result.values == chosen.map { $0.value } && result.failure == nil)
    }
  }

  @Test func `a RESP reader refuses nonsense whatever its split, after the replies before it`() {
    for (text, failure) in nonsense {
      let octets = Array("+OK\r\n".utf8) + Array(text.utf8)
      for pieces in [[octets], octets.map { [$0] }] {
        let result = read(pieces)
        #expect(result.values == [.status("OK")] && result.failure == failure, "\(text.debugDescription)")
      }
    }
  }

  @Test func `a RESP reader stays failed`() {
    var reader = RESPReader()
    reader.append(Array("?".utf8))
    #expect(throws: RESPFailure.type(0x3F)) { try reader.next() }
    reader.append(Array("+OK\r\n".utf8))
    #expect(throws: RESPFailure.type(0x3F)) { try reader.next() }
  }

  @Test func `a RESP reader takes 64 KiB of content and 4,096 values, and no more`() {
    let content = [UInt8](repeating: 0x61, count: 65_536)
    #expect(read([Array("$65536\r\n".utf8) + content + Array("\r\n".utf8)]).values == [.bulk(content)])
    let many = Array("*4096\r\n".utf8) + (0..<4096).flatMap { _ in Array(":1\r\n".utf8) }
    #expect(read([many]).values == [.array([RESPValue](repeating: .integer(1), count: 4096))])
  }

  @Test(arguments: [40, 100, 1000]) func `a RESP reader takes a reply of its limit, and none beyond it`(limit: Int) {
    let line = "+" + String(repeating: "x", count: limit - 3) + "\r\n"
    #expect(read([Array(line.utf8)], limit: limit).values.count == 1)
    #expect(read([Array(("+x" + line.dropFirst()).utf8)], limit: limit).failure == .size)
    #expect(read([[UInt8](repeating: 0x2B, count: limit + 1)], limit: limit).failure == .size)
    let head = "*2\r\n:1\r\n"
    let length = limit - head.utf8.count - String(limit).utf8.count - 5
    for more in 0...(limit < 1000 ? 12 : 8) {
      let count = length + more
      let reply = Array("\(head)$\(count)\r\n".utf8) + [UInt8](repeating: 0x61, count: count) + [0x0D, 0x0A]
      let result = read(reply.map { [$0] }, limit: limit)
      #expect((result.failure == .size) == (reply.count > limit), "\(reply.count) octets")
      #expect((result.values.count == 1) == (reply.count <= limit), "\(reply.count) octets")
      // The limit is one reply's, not the stream's.
      if reply.count <= limit { #expect(read([reply + reply + reply], limit: limit).values.count == 3) }
    }
  }

  @Test func `a RESP reader keeps 200 octets of an error, without control characters`() {
    let long = "-ERR " + String(repeating: "é", count: 300) + "\r\n"
    guard case .error(let text)? = read([Array(long.utf8)]).values.first else {
      Issue.record("no error")
      return
    }
    #expect(text.utf8.count <= 200 && text.utf8.count >= 190)
    #expect(text.unicodeScalars.allSatisfy { $0 == "é" || $0.isASCII })
    let hostile: [UInt8] = Array("-ERR \u{1B}[31m\t\u{0}\u{2028}\u{85}x\r\n".utf8)
    #expect(read([hostile]).values == [.error("ERR ?[31m????x")])
    #expect(read([[0x2D, 0xFF, 0xFE, 0x0D, 0x0A]]).values == [.error("\u{FFFD}\u{FFFD}")])
  }

  @Test func `a RESP reader looks at each octet once`() {
    // Twice the octets, one by one, take about twice the time: a reader that begins again would take four times as much.
    func time(_ count: Int) -> Int {
      let reply =
        Array("*\(count / 64)\r\n".utf8)
        + (0..<count / 64).flatMap { _ in Array("$55\r\n".utf8) + [UInt8](repeating: 0x61, count: 55) + [0x0D, 0x0A] }
      return cpuTime { #expect(read(reply.map { [$0] }, limit: 1 << 20).values.count == 1) }
    }
    let (short, long) = (time(1 << 15), time(1 << 18))
    #expect(long < 24 * short, "\(short) ns, and \(long) ns for eight times as much")
  }

  @Test func `a RESP command is an array of bulk strings`() {
    var octets: [UInt8] = []
    RESPCommand.compose([Array("SET".utf8), [], [0, 13, 10]], into: &octets)
    #expect(octets == Array("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\n\u{0}\r\n\r\n".utf8))
    #expect(read([octets]).values == [.array([bulk("SET"), bulk(""), .bulk([0, 13, 10])])])
  }
}
