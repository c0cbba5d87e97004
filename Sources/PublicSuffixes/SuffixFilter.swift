// SuffixFilter.swift -- tells nearly all names that are no public suffix without asking libpsl.
//
// libpsl takes 0.35 µs to say so, and a list may have a million names. Its own list is only compiled in, but Debian's
// package `publicsuffix` has the same as text. A bit for the hash of each of its lines, 32 KiB in all, leaves a few names of
// a hundred to libpsl, which decides. Where the text is missing, or has fewer names than libpsl and so is older, libpsl
// decides about every name. A name that only libpsl has was taken out of the list since.

import CPublicSuffix
import Glibc

/// Which texts may be names of the public suffix list. Immutable; any thread.
struct SuffixFilter: Sendable {
  /// That of the text of Debian's package `publicsuffix`, read when it is first needed; nil without this text.
  static let shared = SuffixFilter(path: "/usr/share/publicsuffix/public_suffix_list.dat")

  /// A bit for each hash of a name of the list.
  private var bits = [UInt64](repeating: 0, count: SuffixFilter.bitCount / 64)

  private static let bitCount = 1 << 18

  /// - Parameter path: a text in the form of publicsuffix.org: a name a line, `*.` before it for all just below it, `!` for
  ///   an exception, `//` for a comment.
  init?(path: String) {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { free(line) }
    var names = 0
    while getline(&line, &room, file) > 0 {
      guard let line, line[0] != SuffixFilter.slash else { continue }
      line[strcspn(line, " \t\r\n")] = 0
      guard line[0] != 0, line[0] != SuffixFilter.exception else { continue }
      names += 1
      set(SuffixFilter.hashes(line).whole)
      // To libpsl, `*.x` means x too.
      if line[0] == SuffixFilter.star, line[1] == SuffixFilter.dot { set(SuffixFilter.hashes(line + 2).whole) }
    }
    guard names > 0, names >= psl_suffix_count(psl_builtin()) else { return nil }
  }

  /// False if a name is certainly not in the list. Names with labels of other scripts (`xn--`), which the text has in
  /// their own letters, always may be.
  ///
  /// - Parameter text: the name in lower case without its final dot; a zero octet ends it.
  func mayContain(_ text: UnsafePointer<CChar>) -> Bool {
    let hashes = SuffixFilter.hashes(text)
    return has(hashes.whole) || has(hashes.besides) || strstr(text, "xn--") != nil
  }

  private func has(_ hash: UInt64) -> Bool {
    let place = SuffixFilter.place(of: hash)
    return bits[place / 64] >> UInt64(place % 64) & 1 != 0
  }

  private mutating func set(_ hash: UInt64) {
    let place = SuffixFilter.place(of: hash)
    bits[place / 64] |= 1 << UInt64(place % 64)
  }

  private static func place(of hash: UInt64) -> Int { Int(hash >> 46) }

  private static let slash = CChar(UInt8(ascii: "/"))
  private static let dot = CChar(UInt8(ascii: "."))
  private static let exception = CChar(UInt8(ascii: "!"))
  private static let star = CChar(UInt8(ascii: "*"))

  /// The hash of a text, and that of the same text with `*` in place of its first label. From the last octet to the first.
  private static func hashes(_ text: UnsafePointer<CChar>) -> (whole: UInt64, besides: UInt64) {
    var whole: UInt64 = 0xCBF2_9CE4_8422_2325
    var parent = whole
    var index = strlen(text)
    while index > 0 {
      index -= 1
      whole = step(whole, text[index])
      if text[index] == dot { parent = whole }
    }
    return (whole, step(parent, star))
  }

  /// One octet of FNV-1a, whose high bits are the good ones.
  private static func step(_ hash: UInt64, _ octet: CChar) -> UInt64 {
    (hash ^ UInt64(UInt8(bitPattern: octet))) &* 0x100_0000_01B3
  }
}
