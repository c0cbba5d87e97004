// ListRecord.swift -- the two lines behind the text of a copy, which say where it comes from.
//
// They stand at the end, so that a text can be written as it comes, and a copy that was cut short has none:
//
//   # httpdnsd list 1 <TAB> https://example.org/cn.txt
//   # FINGERPRINT <TAB> octets <TAB> names <TAB> entity tag <TAB> Last-Modified <TAB> file
//
// The time at which the text was last known to be the server's is that of the file's last modification: an answer that
// nothing has changed need not write all of it again.

import Files
import Glibc

/// What identifies the content of a file as long as no program sets its times.
struct FileIdentity: Hashable, Sendable {
  var inode: UInt64
  var size: Int
  /// Nanoseconds since 1970.
  var modified: Int64
  var changed: Int64

  init(_ status: stat) {
    inode = UInt64(status.st_ino)
    size = Int(status.st_size)
    modified = FileIdentity.nanoseconds(status.st_mtim)
    changed = FileIdentity.nanoseconds(status.st_ctim)
  }

  /// That of the file that a path leads to; nil without one.
  init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }

  init?(_ text: Substring) {
    let fields = text.split(separator: " ")
    guard fields.count == 4, let inode = UInt64(fields[0]), let size = Int(fields[1]), let modified = Int64(fields[2]),
      let changed = Int64(fields[3])
    else { return nil }
    (self.inode, self.size, self.modified, self.changed) = (inode, size, modified, changed)
  }

  var text: String { "\(inode) \(size) \(modified) \(changed)" }
}

/// The lines behind a copy's text.
enum ListRecord {
  private static let mark = "\n# httpdnsd list 1\t"
  /// All of it is in this many octets at the end of a copy.
  static let longest = 4096
  /// Longer texts of a server are not stored.
  private static let longestTag = 512
  private static let longestPlace = 1024

  /// What a server's header field may say that is sent back to it; nil if that is not printable.
  static func tag(_ text: String?) -> String? {
    guard let text, 1...longestTag ~= text.utf8.count, text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { return nil }
    return text
  }

  static func lines(_ place: ListSource.Place, _ details: ListText.Details) -> [UInt8] {
    let shown = place.description.utf8.prefix(longestPlace).map { 0x20...0x7E ~= $0 ? $0 : UInt8(ascii: "?") }
    let fields = [
      place.fingerprint, "\(details.octets)", "\(details.names)", details.entityTag ?? "",
      details.lastModified ?? "", details.identity?.text ?? "",
    ]
    return Array(mark.utf8) + shown + Array("\n# \(fields.joined(separator: "\t"))\n".utf8)
  }

  /// - Parameters:
  ///   - end: the last octets of a copy, at most `longest`.
  ///   - size: that of the copy.
  /// - Returns: nil if they are damaged, or are those of another place.
  static func details(_ end: [UInt8], size: Int, of place: ListSource.Place) -> ListText.Details? {
    guard end.last == 0x0A, let start = end.ranges(of: Array(mark.utf8)).last?.lowerBound else { return nil }
    let lines = String(decoding: end[start...], as: UTF8.self).split(separator: "\n")
    guard lines.count == 2, lines[1].hasPrefix("# ") else { return nil }
    let fields = lines[1].dropFirst(2).split(separator: "\t", omittingEmptySubsequences: false)
    let length = end.count - start
    guard fields.count == 6, fields[0] == place.fingerprint, let octets = fields[1].number(in: 0...Int.max),
      octets == size - length, let names = fields[2].number(in: 1...ListFolder.mostNames)
    else { return nil }
    return ListText.Details(
      octets: octets, names: names, entityTag: tag(String(fields[3])), lastModified: tag(String(fields[4])),
      identity: FileIdentity(fields[5]))
  }
}
