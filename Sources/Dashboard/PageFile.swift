// PageFile.swift -- the files of the page, as the program holds them.

import CPage
import Ciphers
import DNSWire

/// A file that everybody may read.
struct PageFile {
  let name: String
  let contentType: String
  private let content: UnsafeBufferPointer<UInt8>
  /// ETag (RFC 9110 section 8.8.3): of its content, so that a new version of the program is seen at once.
  let tag: String

  /// The page itself.
  static let index = "index.html"

  init(_ file: page_file) {
    name = String(cString: file.name)
    contentType = String(cString: file.type)
    content = UnsafeBufferPointer(start: file.octets, count: file.count)
    tag = "\"\(Base64URL.encode(Array(Digest.sha256(Array(content)).prefix(12))))\""
  }

  /// A copy of its content.
  var octets: [UInt8] { Array(content) }

  /// The files that the program was built with.
  static func all() -> [PageFile] { (0..<page_file_count).map { PageFile(page_file_at($0)) } }
}
