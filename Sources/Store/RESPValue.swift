// RESPValue.swift -- replies of the store (RESP2), and composing commands.

/// A reply in RESP2.
public enum RESPValue: Hashable, Sendable {
  /// A short text, such as `OK`. Truncated to 200 octets; control characters are replaced by `?`.
  case status(String)
  /// An error that begins with its code, such as `NOAUTH`. Truncated to 200 octets; control characters are replaced by
  /// `?`.
  case error(String)
  /// A 64-bit integer.
  case integer(Int64)
  /// A bulk string.
  case bulk([UInt8])
  /// The null bulk string or the null array.
  case null
  case array([RESPValue])
}

/// Why the input was rejected. The reader accepts nothing after it.
public enum RESPFailure: Error, Hashable, Sendable {
  /// An unknown type octet at the start of a value.
  case type(UInt8)
  /// A CR without LF, an LF without CR, or a bulk string that is not followed by CR LF.
  case lineEnd
  /// Not a number, too large, or not in canonical form.
  case number
  /// A length below -1, or an array of more than `RESPReader.countLimit` values.
  case length
  /// Arrays nested deeper than `RESPReader.depthLimit`.
  case nesting
  /// A bulk string longer than `RESPReader.bulkLimit`, or a reply longer than the reader's limit.
  case size
}

extension RESPFailure: CustomStringConvertible {
  /// The reason in log lines.
  public var description: String {
    switch self {
    case .type(0x15): "the server speaks TLS"
    case .type(let octet) where (0x20..<0x7F).contains(octet):
      "it begins with '\(Unicode.Scalar(octet))', so the server is not a Redis server"
    case .type(let octet): "it begins with octet \(octet), so the server is not a Redis server"
    case .lineEnd: "a line does not end with CR LF"
    case .number: "a number is malformed"
    case .length: "a length is out of range"
    case .nesting: "arrays are nested too deeply"
    case .size: "a reply is too large"
    }
  }
}

/// Composes commands.
public enum RESPCommand {
  /// Appends a command to `octets`, as an array of bulk strings.
  ///
  /// - Parameter words: the command's name and its arguments.
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

  /// A command's name, for log lines.
  static func name(_ word: [UInt8]) -> String { RESPText.line(word[...]) }

  private static let lineEnd: [UInt8] = [0x0D, 0x0A]

  private static func appendHead(_ type: Unicode.Scalar, _ count: Int, to octets: inout [UInt8]) {
    octets.append(UInt8(ascii: type))
    octets += String(count).utf8
    octets += lineEnd
  }
}

/// Makes untrusted text safe for log lines.
enum RESPText {
  /// The longest text in octets.
  static let limit = 200

  /// Truncates a text to 200 octets, and replaces control characters and line separators by `?`.
  static func line(_ octets: ArraySlice<UInt8>) -> String {
    var kept = octets.prefix(limit)
    // Remove an incomplete character: it would be decoded as U+FFFD, which is longer.
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
