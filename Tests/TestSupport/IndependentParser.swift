// IndependentParser.swift -- asks dnspython, which shares no code and no author with us, about DNS octets and text.

import Glibc

/// dnspython in one short-lived process for a whole batch.
public enum IndependentParser {
  /// Why there is no verdict.
  public struct Failure: Error, CustomStringConvertible {
    /// One line: what to do.
    public let description: String
  }

  /// What dnspython makes of messages, in their order: `ok` and the contents, or `no` and the reason.
  ///
  /// The contents are questions (`Q:owner:type:class`), records of class IN (`1:owner:type:ttl:rdata`, beginning with
  /// their section) and OPT (`E:size:ttl:code=data,…`), names and data in hexadecimal, separated by spaces.
  public static func verdicts(on messages: [[UInt8]]) throws -> [String] {
    var input: [UInt8] = []
    input.reserveCapacity(messages.reduce(0) { $0 + $1.count + 2 })
    for message in messages {
      input += [UInt8(message.count >> 8), UInt8(message.count & 0xFF)] + message
    }
    return try run("messages", input, expecting: messages.count)
  }

  /// dnspython's presentation text of uncompressed RDATA; an empty line where it refuses.
  public static func texts(of rdata: [(type: UInt16, octets: [UInt8])]) throws -> [String] {
    let lines = rdata.map { "\($0.type) \(hexadecimal($0.octets))\n" }
    return try run("texts", Array(lines.joined().utf8), expecting: rdata.count)
  }

  /// dnspython's RDATA in hexadecimal for presentation text; an empty line where it refuses.
  public static func rdata(of texts: [(type: UInt16, text: String)]) throws -> [String] {
    let lines = texts.map { "\($0.type) \($0.text)\n" }
    return try run("rdata", Array(lines.joined().utf8), expecting: texts.count)
  }

  /// Lower-case hexadecimal, as the answers have it.
  public static func hexadecimal(_ octets: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(octets.count * 2)
    for octet in octets {
      text.append(digits[Int(octet >> 4)])
      text.append(digits[Int(octet & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static let digits = Array("0123456789abcdef".utf8)

  private static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }

  /// `HTTPDNSD_TEST_PYTHON`, or the checkout's own environment, or the one on the path.
  private static var python: String {
    if let chosen = getenv("HTTPDNSD_TEST_PYTHON") { return String(cString: chosen) }
    let own = "\(root)/.build/test-venv/bin/python3"
    return access(own, X_OK) == 0 ? own : "python3"
  }

  private static func run(_ task: String, _ input: [UInt8], expecting count: Int) throws -> [String] {
    let folder = TemporaryFolder()
    let question = folder.write(input, to: "question")
    try spawn([
      python, "\(root)/Tests/DNSWireTests/Data/independent_parser.py", task, question, folder.path(of: "answer"),
    ])
    guard let answer = folder.read("answer") else { throw Failure(description: "there is no answer") }
    let lines = answer.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
    guard lines.count == count else { throw Failure(description: "\(count) questions, \(lines.count) answers") }
    return lines.map { String(decoding: $0, as: UTF8.self) }
  }

  private static func spawn(_ arguments: [String]) throws {
    let status = try TestSupport.run(arguments)
    guard status == 0 else {
      throw Failure(
        description: "\(arguments[0]) cannot ask dnspython 2.9 or later (status \(status)); to install it: "
          + "python3 -m venv .build/test-venv && .build/test-venv/bin/pip install 'dnspython>=2.9', "
          + "or name another interpreter in HTTPDNSD_TEST_PYTHON")
    }
  }
}
