// DoHTargetProperty.swift -- whatever a client writes behind the path, `?dns=` gives exactly the message that it spells.

import DNSWire
import Frontend

/// The target of a GET for DNS over HTTPS, decoded in its own memory.
public final class DoHTargetProperty: Property {
  /// The fuzz target.
  public static let name = "DoHTarget"

  private let site = DoHSite(path: "/dns-query", hasJSON: true, name: nil, addresses: [], isPlain: false)

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let expected = DoHTargetProperty.text(in: input[...])
    var target = Array("/dns-query?".utf8) + input
    let message = read(&target)
    if let expected, expected.utf8.count <= DoHLimit.characters, let octets = Base64URL.decode(expected),
      octets.count >= QueryReader.headerLength, octets[2] & 0x80 == 0
    {
      try require(message == octets, "other octets than those of dns=")
    } else {
      try require(message == nil, "a message that dns= does not spell")
    }
    // As a whole target, and as a question of the JSON interface.
    var whole = input
    _ = read(&whole)
    guard let question = input.withUnsafeBufferPointer({ try? JSONQuestion($0) }), question.question.type != .opt,
      !question.question.type.isOnlyForQuestions
    else {
      return
    }
    guard let query = try? Message.parse(question.message) else { throw Violation("a question that is no query") }
    try require(query.questions.map(\.question) == [question.question], "another question than that of name=")
  }

  private func read(_ target: inout [UInt8]) -> [UInt8]? {
    target.withUnsafeMutableBufferPointer { octets in
      let none = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
      var get: (UInt8, UInt8, UInt8) = (71, 69, 84)
      return withUnsafeBytes(of: &get) { method in
        let head = DoHRequestHead(
          method: method.bindMemory(to: UInt8.self), target: octets, host: none, contentType: none, contentLength: nil)
        guard case .message(let message)? = try? DoHRequest.read(head, to: site, isKnown: { $0.isEmpty }) else {
          return nil
        }
        return Array(message)
      }
    }
  }

  /// The text of the first `dns=`, by another way than the reader's.
  private static func text(in query: ArraySlice<UInt8>) -> String? {
    query.split(separator: UInt8(ascii: "&")).first { $0.starts(with: Array("dns=".utf8)) }.map {
      String(decoding: $0.dropFirst(4), as: UTF8.self)
    }
  }
}
