// TokenList.swift -- the tokens by which clients of the encrypted listeners are told from strangers: `encrypted.tokens_file`.
//
// One wrong line refuses the whole file: a token that silently does not count locks a device out, and one that counts by
// mistake lets a stranger in. No message shows any of a line, since label and token may stand in the wrong order.
//
// A token is looked up by its digest. An attacker cannot choose digests, so that the time of a look-up says nothing about
// how much of a guess is right.

import Ciphers
import Files

/// The accepted tokens with their labels. Immutable.
public struct TokenList: Sendable, Equatable {
  /// A token that was presented and accepted. Shows its label only.
  public struct Entry: Hashable, Sendable, CustomStringConvertible {
    /// The device or person that the token is for, in logs: 1 to 63 letters, digits, `-`, `_` and `.`.
    public let label: String
    fileprivate let digest: [UInt8]

    public var description: String { label }
  }

  /// Why a file is not accepted. Never shows a token.
  public enum Fault: Error, Hashable, Sendable {
    case file(FileFault)
    /// Other users may access the file, whose permission bits are these.
    case exposed(mode: UInt32)
    /// A line, counted from 1, is wrong.
    case line(Int, LineFault)
  }

  /// What is wrong with a line.
  public enum LineFault: Hashable, Sendable {
    /// There are not two words.
    case form
    case label
    case token
    /// The label, or the token in some letter case, is that of this earlier line.
    case repeated(Int)
  }

  /// The largest accepted file, in octets.
  public static let maximumSize = 64 << 10

  /// The labels in the order of the file.
  public private(set) var labels: [String] = []
  private var tokens: [String: Secret] = [:]
  /// By the digest of the token.
  private var exact: [[UInt8]: Entry] = [:]
  /// By the digest of the token in lower case, the only case that counts in names.
  private var folded: [[UInt8]: Entry] = [:]

  /// A list that accepts no token.
  public init() {}

  /// Parses lines `LABEL TOKEN`. `#` begins a comment; blank lines mean nothing.
  ///
  /// - Throws: The first fault.
  /// - Complexity: O(octets)
  public init(octets: [UInt8]) throws(Fault) {
    guard octets.count <= TokenList.maximumSize else { throw .file(.tooLarge(limit: TokenList.maximumSize)) }
    var lineOfLabel: [String: Int] = [:]
    var lineOfToken: [[UInt8]: Int] = [:]
    for (index, line) in octets.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let words = line.prefix { $0 != UInt8(ascii: "#") }.split(whereSeparator: isBlank)
      guard !words.isEmpty else { continue }
      guard words.count == 2 else { throw .line(index + 1, .form) }
      guard (1...63).contains(words[0].count), words[0].allSatisfy({ isLetterOrDigit($0) || "-_.".utf8.contains($0) })
      else { throw .line(index + 1, .label) }
      guard TokenList.isToken(words[1]) else { throw .line(index + 1, .token) }
      let label = String(decoding: words[0], as: UTF8.self)
      let key = digest(words[1], isFolded: true)
      if let earlier = lineOfLabel[label] ?? lineOfToken[key] { throw .line(index + 1, .repeated(earlier)) }
      (lineOfLabel[label], lineOfToken[key]) = (index + 1, index + 1)
      let entry = Entry(label: label, digest: digest(words[1], isFolded: false))
      labels.append(label)
      tokens[label] = Secret(String(decoding: words[1], as: UTF8.self))
      exact[entry.digest] = entry
      folded[key] = entry
    }
  }

  /// Reads and parses a file that only its owner may access, or that a container engine or systemd provides. Blocks, so do not
  /// call it on a loop.
  ///
  /// - Parameter credentials: systemd's folder of credentials, `$CREDENTIALS_DIRECTORY`.
  public init(path: String, credentials: String?) throws(Fault) {
    let file: RegularFile
    do { file = try RegularFile(path, limit: TokenList.maximumSize) } catch { throw .file(error) }
    guard file.mode & 0o077 == 0 || file.isProvided(credentials: credentials) else { throw .exposed(mode: file.mode) }
    try self.init(octets: file.octets)
  }

  /// The entry of the token that an element of a URL's path is; nil if it is not accepted.
  public func entry(pathElement: [UInt8]) -> Entry? {
    TokenList.isToken(pathElement) ? exact[digest(pathElement, isFolded: false)] : nil
  }

  /// The entry of the token that the first label of a server's name (SNI) is, in any letter case; nil if it is not accepted.
  public func entry(nameLabel: [UInt8]) -> Entry? {
    TokenList.isToken(nameLabel) ? folded[digest(nameLabel, isFolded: true)] : nil
  }

  /// Whether a token that another list accepted is accepted here, under the same label.
  public func accepts(_ entry: Entry) -> Bool { exact[entry.digest] == entry }

  /// Whether both accept the same tokens under the same labels, in any order.
  public static func == (left: TokenList, right: TokenList) -> Bool { left.exact == right.exact }

  /// The token of a label; nil if there is no such label.
  public func token(of label: String) -> Secret? { tokens[label] }

  /// 16 to 63 letters, digits and hyphens, so that it is a label of a host's name (RFC 1123 section 2.1), which has no hyphen
  /// at either end.
  private static func isToken(_ octets: some BidirectionalCollection<UInt8>) -> Bool {
    let hyphen = UInt8(ascii: "-")
    return (16...63).contains(octets.count) && octets.allSatisfy { isLetterOrDigit($0) || $0 == hyphen }
      && octets.first != hyphen && octets.last != hyphen
  }
}

extension TokenList.Fault: CustomStringConvertible {
  /// What is wrong, then what to do.
  public var description: String {
    switch self {
    case .file(let fault): "\(fault)"
    case .exposed(let mode):
      "other users can access the file (mode 0\(String(mode, radix: 8))); expected mode 0600 or stricter (chmod 600)"
    case .line(let number, let fault): "line \(number): \(fault)"
    }
  }
}

extension TokenList.LineFault: CustomStringConvertible {
  /// What is wrong with the line, without any of its text.
  public var description: String {
    switch self {
    case .form: "is not \"LABEL TOKEN\""
    case .label: "the label is not valid; expected 1 to 63 letters, digits, \"-\", \"_\" or \".\""
    case .token: "the token is not valid; expected 16 to 63 letters, digits and hyphens, without a hyphen at either end"
    case .repeated(let line): "label or token is that of line \(line); tokens differ in more than letter case"
    }
  }
}

private func digest(_ token: some Collection<UInt8>, isFolded: Bool) -> [UInt8] {
  Digest.sha256(isFolded ? token.map { 65...90 ~= $0 ? $0 | 0x20 : $0 } : Array(token))
}

private func isLetterOrDigit(_ octet: UInt8) -> Bool { 97...122 ~= octet | 0x20 || 48...57 ~= octet }

private func isBlank(_ octet: UInt8) -> Bool { octet == 0x20 || 0x09...0x0D ~= octet }
