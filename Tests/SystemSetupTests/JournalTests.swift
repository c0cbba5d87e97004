// JournalTests.swift -- the journal's octets mean the journal, and nothing else does.

import Glibc
import Testing

@testable import SystemSetup

@Suite struct JournalTests {
  private func journal() -> Journal {
    var plan = Plan(.networkManager, Nameserver(host: "::1", port: 53), program: "/usr/bin/httpdnsd")
    let time = FileTime(seconds: 1_700_000_000, nanoseconds: 5)
    let octets = Array("absent\nend\n".utf8) + [0, 255, 10, 10]
    plan.changes = [
      Change("/a folder", from: .absent, to: .folder(mode: 0o755)),
      Change("/f", from: .file(octets, FileAttributes(mode: 0o4640, user: 7, group: 8, modified: time)), to: .text("")),
      Change("/l", from: .link(to: "../a b\nc"), to: .text("x", mode: 0o755), .overwrite),
      Change("/o", from: .absent, to: .text("end\n"), .ours),
    ]
    return Journal(plan)
  }

  @Test func `a journal that was written is read as it was`() {
    #expect(Journal(octets: journal().octets) == journal())
  }

  @Test func `a journal that was cut anywhere is nil`() {
    let octets = journal().octets
    for count in 0..<octets.count { #expect(Journal(octets: Array(octets[..<count])) == nil, "\(count) octets") }
    #expect(Journal(octets: octets + [10]) == nil)
  }

  @Test func `a journal that is damaged stops undo with a reason`() throws {
    let machine = Machine()
    machine.file(SetupPaths.journal, "httpdnsd-setup 2\n")
    #expect(throws: SetupError.self) { try Installation(root: machine.root).undo() }
  }

  @Test(arguments: SetupMethod.allCases)
  func `what setup has made is removed even if its journal is damaged`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(method))
    #expect(try !installation.abandon())
    machine.file(SetupPaths.journal, "httpdnsd-setup 1\nfile 127")
    guard case .refused(let reason) = #expect(throws: SetupError.self, performing: { try installation.undo() }) else {
      throw SetupError.refused("not refused")
    }
    #expect(reason.contains("undo --force"))
    #expect(try !installation.abandon())
    #expect(try installation.abandon(isForced: true))
    #expect(try installation.journal() == nil)
    let after = try machine.tree()
    let left = after.keys.filter { before[$0] == nil && $0.contains("httpdnsd") && after[$0] != .folder(mode: 0o755) }
    #expect(left == [Installation.aside(of: SetupPaths.journal)])
    let servers = ResolverText.servers(of: machine.text("/etc/resolv.conf") ?? "")
    #expect(!servers.contains("127.0.0.1") || method == .resolvconf)
    #expect(!servers.isEmpty)
  }

  @Test(arguments: SetupMethod.allCases, [false, true])
  func `what setup has made is recognised and removed without a journal`(
    method: SetupMethod, isFolderGone: Bool
  ) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    #expect(try installation.remains() == nil)
    #expect(try !installation.abandon(isForced: true))
    try installation.apply(try machine.plan(method))
    #expect(try installation.remains() == nil)
    for name in machine.root.names(in: SetupPaths.state) where isFolderGone || name == "journal" {
      machine.remove("\(SetupPaths.state)/\(name)")
    }
    if isFolderGone { rmdir(machine.folder + SetupPaths.state) }
    guard case .lost(let remains) = try installation.application() else { throw SetupError.refused("not lost") }
    #expect(remains.paths.allSatisfy { machine.root.exists($0) } && "\(remains)".contains("`httpdnsd setup undo`"))
    let again = try machine.plan(method)
    #expect(throws: SetupError.refused("\(remains)")) { try installation.apply(again) }
    #expect(try installation.undo() == nil)
    #expect(try installation.abandon())
    #expect(try installation.application() == nil)
    let after = try machine.tree()
    #expect(after.keys.filter { before[$0] == nil && after[$0] != .folder(mode: 0o755) } == [])
    let servers = ResolverText.servers(of: machine.text("/etc/resolv.conf") ?? "")
    #expect(!servers.contains("127.0.0.1") || method == .resolvconf)
    #expect(!servers.isEmpty)
  }

  @Test func `a link of an earlier version to a file that is gone is recognised without a journal`() throws {
    let machine = Machine(for: .networkManager)
    machine.link("/etc/resolv.conf", to: SetupPaths.following)
    let installation = Installation(root: machine.root)
    #expect(try installation.remains()?.paths == ["/etc/resolv.conf"])
    #expect(try installation.abandon())
    #expect(try installation.application() == nil)
  }
}
