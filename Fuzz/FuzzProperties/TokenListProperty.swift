// TokenListProperty.swift -- what a file of tokens accepts is what its lines say, and the same when it is written down again.

import Ciphers
import Frontend

/// The tokens of the encrypted listeners.
public struct TokenListProperty: Property {
  /// The fuzz target.
  public static let name = "TokenList"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let list: TokenList
    do throws(TokenList.Fault) {
      list = try TokenList(octets: input)
    } catch {
      try require(isOneLine("\(error)"), "a message of several lines")
      return
    }
    try require(Set(list.labels).count == list.labels.count, "a label twice")
    var lines = ""
    for label in list.labels {
      guard let token = list.token(of: label)?.reveal else { throw Violation("a label without a token") }
      guard let entry = list.entry(pathElement: token) else { throw Violation("a token that is not accepted") }
      try require(entry.label == label && list.accepts(entry), "a token with another label")
      for name in [token, token.map { 65...90 ~= $0 ? $0 | 0x20 : $0 }, token.map { 97...122 ~= $0 ? $0 & 0xDF : $0 }] {
        try require(list.entry(nameLabel: name) == entry, "a name whose letter case counts")
      }
      // The beginning of a token may be another device's token, but never stands for this one.
      try require(list.entry(pathElement: Array(token.dropLast()))?.label != label, "a token without its end")
      lines += "\(label) \(String(decoding: token, as: UTF8.self))\n"
    }
    guard let again = try? TokenList(octets: Array(lines.utf8)) else {
      throw Violation("lines that are refused when read again")
    }
    try require(again.labels == list.labels, "other labels when read again")
  }
}
