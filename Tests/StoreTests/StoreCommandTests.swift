// StoreCommandTests.swift -- the commands that the daemon sends, and the permissions that its user has in the documents.

import Files
import TestSupport
import Testing

@testable import Store

@Suite struct `The store's commands` {
  @Test(arguments: ["docs/fleet.md", "Config/kubernetes/fleet-secret.yaml"])
  func `the documented user may send the daemon's commands and no other`(path: String) throws {
    let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
    let text = String(decoding: try WholeFile.read("\(root)/\(path)", limit: 1 << 20), as: UTF8.self)
    let line = try #require(text.split(separator: "\n").first { $0.contains("user httpdnsd on >") })
    let permissions = line.split(separator: " ").filter { $0.hasPrefix("+") }.map { $0.dropFirst().uppercased() }
    #expect(permissions.sorted() == StoreCommand.allCases.map(\.rawValue).sorted())
  }

  @Test func `a command is its name and its arguments`() {
    #expect(StoreCommand.set.words([1, 0], "NX".utf8) == [Array("SET".utf8), [1, 0], Array("NX".utf8)])
    #expect(StoreCommand.time.words() == [Array("TIME".utf8)])
  }

  /// A reply of each type, and the commands that can have it.
  @Test(arguments: [
    (RESPValue.status("OK"), [StoreCommand.auth, .select, .set]), (.status("PONG"), [.ping, .set]),
    (.integer(1), [.del, .incrby, .zadd, .zremrangebyscore]),
    (bulk("v"), [.get, .set, .xadd]), (.null, [.get, .set, .xadd, .xread]),
    (.array([]), [.time, .xread, .zrange]), (.error("NOPERM"), StoreCommand.allCases),
  ])
  func `a command fits the replies of its types and every error`(reply: RESPValue, commands: [StoreCommand]) {
    #expect(Set(StoreCommand.allCases.filter { $0.fits(reply) }) == Set(commands))
  }
}
