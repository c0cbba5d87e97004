// CacheFileCopies.swift -- a cache file with as many entries as a test wants, made from one that a daemon has written.

import Foundation

@testable import Persistence

/// Replaces each entry of a cache file whose name has that word by `count` entries that have "x" and five digits there.
///
/// - Parameter word: six octets, as the digits with their "x" are.
func copyEntries(named word: String, times count: Int, inFile path: String) throws {
  let octets = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
  let end = octets.count - CacheFormat.checksumLength - CacheFormat.countLength
  var reader = ImageReader(octets, from: CacheFormat.magic.count + 4, to: end)
  _ = try reader.take(Int64.self)
  _ = try reader.takeFingerprints(Int(reader.take(UInt16.self)))
  _ = try reader.takeSources()
  var result = Array(octets[..<reader.offset])
  var entries: UInt64 = 0
  while reader.offset < end {
    let place = reader.offset
    let key = Int(ImageReader.number(octets, place + RecordLayout.keyLength, UInt16.self))
    let body = Int(ImageReader.number(octets, place + RecordLayout.bodyLength, UInt16.self))
    try reader.skip(RecordLayout.length + key + body)
    var record = Array(octets[place..<reader.offset])
    let letters = Array(word.utf8)
    let starts = RecordLayout.length...(RecordLayout.length + key - letters.count)
    guard let name = starts.first(where: { record[$0..<$0 + letters.count].elementsEqual(letters) }) else {
      result += record
      entries += 1
      continue
    }
    for number in 0..<count {
      record.replaceSubrange(name..<name + letters.count, with: "x\("\(100_000 + number)".suffix(5))".utf8)
      result += record
    }
    entries += UInt64(count)
  }
  withUnsafeBytes(of: entries.littleEndian) { result += $0 }
  result += CacheImage.checksum(of: result[...])
  try Data(result).write(to: URL(fileURLWithPath: path))
}
