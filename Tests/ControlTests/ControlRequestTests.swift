// ControlRequestTests.swift -- a command of the control socket has all its places: list, program and documents.

import Foundation
import Testing

@testable import Control

@Suite struct ControlRequestTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// The types of the list, without the end that all have.
  private static let commands = ControlRequests.all.map { String("\($0)".dropLast("Request".count)) }

  private func text(_ path: String) throws -> String {
    try String(contentsOf: ControlRequestTests.root.appending(path: path), encoding: .utf8)
  }

  private func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: ControlRequestTests.root.appending(path: folder).path())
  }

  @Test func `the list has a command for each file of the folder`() throws {
    let files = ControlRequestTests.commands.map { "\($0)Request.swift" }
    #expect(try names(in: "Sources/Control/Commands").sorted() == files.sorted())
  }

  @Test func `no two commands of the list have one path`() {
    #expect(Set(ControlRequests.all.map { $0.path }).count == ControlRequests.all.count)
  }

  /// `GET /configuration` is a part of `reload`.
  @Test(arguments: ControlRequests.all.map { $0.path }.filter { $0 != "/configuration" })
  func `a command of the list is a command of the program`(path: String) throws {
    let type = try #require(ControlRequests.all.first { $0.path == path })
    let name = "\(type)".dropLast("Request".count)
    #expect(try names(in: "Sources/httpdnsd/Commands").contains("\(name)Command.swift"))
    #expect(try text("Sources/httpdnsd/HTTPDNSDaemon.swift").contains("\(name)Command.self"))
  }

  @Test func `operations.md has a row for each file of a command`() throws {
    let rows = try text("docs/operations.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
    for file in try names(in: "Sources/httpdnsd/Commands") {
      var word = ""
      for character in file.dropLast("Command.swift".count) {
        word += (character.isUppercase && !word.isEmpty ? "-" : "") + character.lowercased()
      }
      #expect(rows.contains { $0.hasPrefix("| `\(word)`") || $0.hasPrefix("| `\(word) ") }, "\(word)")
    }
  }
}
