// CorpusTests.swift -- replays Fuzz/Corpus: everything that was once of interest to a fuzz target.

import FuzzProperties
import Glibc
import Testing

private let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" } + "/Fuzz/Corpus"

@Suite struct `The fuzz corpus` {
  @Test(arguments: properties.map { $0.name }) func `no input of the fuzz corpus breaks its property`(name: String)
    throws
  {
    let property = try #require(properties.first { $0.name == name }).init()
    let files = try files(in: "\(root)/\(name)")
    // A corpus that was not found would pass.
    #expect(files.count >= 10)
    for file in files {
      do {
        try property.check(content(of: file))
      } catch {
        Issue.record("\(file): \(error)")
      }
    }
  }

  @Test func `each folder of the fuzz corpus has a property`() throws {
    #expect(Set(try names(in: root)) == Set(properties.map { $0.name }))
  }
}

private func files(in folder: String) throws -> [String] { try names(in: folder).map { "\(folder)/\($0)" } }

/// The entries of a folder, hidden ones left out.
private func names(in folder: String) throws -> [String] {
  let stream = try #require(opendir(folder), "\(folder)")
  defer { closedir(stream) }
  var names: [String] = []
  while let entry = readdir(stream) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if !name.hasPrefix(".") { names.append(name) }
  }
  return names.sorted()
}

private func content(of path: String) throws -> [UInt8] {
  let file = try #require(fopen(path, "r"), "\(path)")
  defer { fclose(file) }
  var octets: [UInt8] = []
  var block = [UInt8](repeating: 0, count: 1 << 16)
  while case let count = fread(&block, 1, block.count, file), count > 0 { octets += block[..<count] }
  return octets
}
