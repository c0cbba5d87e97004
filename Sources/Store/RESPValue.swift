// RESPValue.swift -- what a store replies (RESP2), and how a command is written.

/// A reply of the store, as RESP2 has it.
public enum RESPValue: Hashable, Sendable {
  /// A short text, such as `OK`. At most 200 octets are kept; control characters are replaced.
  case status(String)
  /// An error, beginning with its code, such as `NOAUTH`. At most 200 octets are kept; control characters are replaced.
  case error(String)
  /// A number.
  case integer(Int64)
  /// Octets.
  case bulk([UInt8])
  /// Nothing, in either of RESP2's two forms.
  case null
  /// Several values.
  case array([RESPValue])
}

extension RESPValue {
  fileprivate var isStatus: Bool { if case .status = self { true } else { false } }
  fileprivate var isInteger: Bool { if case .integer = self { true } else { false } }
  fileprivate var isBulk: Bool { if case .bulk = self { true } else { false } }
  fileprivate var isArray: Bool { if case .array = self { true } else { false } }
}

/// Why octets are no reply that is used. Nothing after them is read.
public enum RESPFailure: Error, Hashable, Sendable {
  /// An octet where the type of a value must stand.
  case type(UInt8)
  /// A CR without LF, an LF without CR, or content that does not end with both.
  case lineEnd
  /// A number that is none, is too large, or is not in its shortest form.
  case number
  /// A length below -1, or an array of more than 4,096 values.
  case length
  /// More than six arrays in one another.
  case nesting
  /// Content of more than 64 KiB, or a reply beyond the reader's limit.
  case size
}

extension RESPFailure: CustomStringConvertible {
  /// Words for a log line.
  public var description: String {
    switch self {
    case .type(0x15): "the server speaks TLS"
    case .type(let octet) where (0x20..<0x7F).contains(octet):
      "it begins with '\(Unicode.Scalar(octet))', so the server is no Redis server"
    case .type(let octet): "it begins with octet \(octet), so the server is no Redis server"
    case .lineEnd: "a line does not end with CR LF"
    case .number: "a number is malformed"
    case .length: "a length is out of range"
    case .nesting: "arrays are nested too deeply"
    case .size: "a reply is too large"
    }
  }
}

/// Commands in the form for the wire.
public enum RESPCommand {
  /// Appends a command, its name first, as an array of bulk strings.
  ///
  /// - Complexity: O(n) in the number of octets.
  public static func compose(_ words: [[UInt8]], into octets: inout [UInt8]) {
    octets.reserveCapacity(octets.count + words.reduce(16) { $0 + $1.count + 16 })
    appendHead("*", words.count, to: &octets)
    for word in words {
      appendHead("$", word.count, to: &octets)
      octets += word
      octets += lineEnd
    }
  }

  /// A command's name for log lines.
  static func name(_ word: [UInt8]) -> String { RESPText.line(word[...]) }

  /// Whether a command adds to what the store has: one that is full takes all others.
  static func adds(_ word: [UInt8]) -> Bool {
    ["SET", "INCRBY", "XADD", "ZADD"].contains(String(decoding: word, as: UTF8.self))
  }

  /// Whether a reply can be that to a command; one of another type shows that replies are out of step.
  ///
  /// - Parameter word: the command's name in upper case; any reply fits one that is not known here.
  static func fits(_ reply: RESPValue, to word: [UInt8]) -> Bool {
    if case .error = reply { return true }
    switch String(decoding: word, as: UTF8.self) {
    case "PING": return reply == .status("PONG")
    case "AUTH", "SELECT": return reply == .status("OK")
    case "GET", "XADD": return reply.isBulk || reply == .null
    case "SET": return reply.isStatus || reply.isBulk || reply == .null
    case "DEL", "INCRBY", "ZADD", "ZREMRANGEBYSCORE": return reply.isInteger
    case "TIME", "ZRANGE": return reply.isArray
    case "XREAD": return reply.isArray || reply == .null
    default: return true
    }
  }

  private static let lineEnd: [UInt8] = [0x0D, 0x0A]

  private static func appendHead(_ type: Unicode.Scalar, _ count: Int, to octets: inout [UInt8]) {
    octets.append(UInt8(ascii: type))
    octets += String(count).utf8
    octets += lineEnd
  }
}

/// A stranger's text for log lines.
enum RESPText {
  /// Octets of a line that are kept.
  static let limit = 200

  /// At most 200 octets of a text, without control characters and line separators.
  static func line(_ octets: ArraySlice<UInt8>) -> String {
    var kept = octets.prefix(limit)
    // A character that was cut would come out as a replacement character, which is longer.
    if kept.count < octets.count {
      while let last = kept.last, last & 0xC0 == 0x80 { kept.removeLast() }
      if let last = kept.last, last >= 0xC0 { kept.removeLast() }
    }
    var text = String.UnicodeScalarView()
    for scalar in String(decoding: kept, as: UTF8.self).unicodeScalars {
      let isPlain = scalar.properties.generalCategory != .control && scalar != "\u{2028}" && scalar != "\u{2029}"
      text.append(isPlain ? scalar : "?")
    }
    return String(text)
  }
}
