// InstallationTests.swift -- undo restores what setup changed octet for octet, whatever happens in between.

import Glibc
import Testing

@testable import SystemSetup

@Suite struct InstallationTests {
  /// Ends as a program that is killed before its n-th step.
  private struct Killer {
    private final class Counter {
      var steps = 0
    }
    private let counter = Counter()
    let last: Int
    var steps: Int { counter.steps }

    func writer(_ root: Root) -> FileWriter {
      FileWriter(root: root) { [counter, last] (step) throws(SetupError) in
        guard counter.steps < last else { throw .refused("killed before: \(step)") }
        counter.steps += 1
      }
    }
  }

  @Test(arguments: SetupMethod.allCases)
  func `undo restores content, mode, owner, time and links`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(method))
    #expect(try machine.tree() != before)
    let undone = try installation.undo()
    #expect(undone?.journal.method == method)
    #expect(try machine.tree() == before)
    #expect(try installation.undo() == nil)
    #expect(try machine.tree() == before)
  }

  @Test(arguments: SetupMethod.allCases)
  func `undo restores everything after apply was killed before any of its steps`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    var steps = 0
    while true {
      let killer = Killer(last: steps)
      let plan = try machine.plan(method)
      mkdir(machine.root.real(SetupPaths.state), 0o755)
      let isKilled = (try? installation.begin(plan, killer.writer(machine.root))) == nil
      _ = try installation.undo()
      #expect(try machine.tree() == before, "killed before step \(steps)")
      guard isKilled else { break }
      steps += 1
    }
    #expect(steps > 3)
  }

  @Test(arguments: SetupMethod.allCases)
  func `undo restores everything after undo was killed before any of its steps`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    var steps = 0
    while true {
      try installation.apply(try machine.plan(method))
      let killer = Killer(last: steps)
      let isKilled = (try? installation.takeBack(.refuse, killer.writer(machine.root))) == nil
      _ = try installation.undo()
      #expect(try machine.tree() == before, "killed before step \(steps)")
      guard isKilled else { break }
      steps += 1
    }
    #expect(steps > 2)
  }

  @Test func `a file that is overwritten in place is restored after a kill at any step`() throws {
    let machine = Machine(for: .file)
    let old = try machine.root.state(of: "/etc/resolv.conf")
    guard case .file(_, let attributes) = old else { throw SetupError.refused("no file") }
    for text in ["short\n", String(repeating: "long line\n", count: 30)] {
      for last in 0...8 {
        var plan = try machine.plan(.file)
        let after = FileState.file(Array(text.utf8), attributes)
        plan.changes = [Change("/etc/resolv.conf", from: old, to: after, .overwrite)]
        mkdir(machine.root.real(SetupPaths.state), 0o755)
        let installation = Installation(root: machine.root)
        try? installation.begin(plan, Killer(last: last).writer(machine.root))
        _ = try? installation.takeBack(.refuse, Killer(last: last % 3).writer(machine.root))
        _ = try installation.undo()
        #expect(try machine.root.state(of: "/etc/resolv.conf") == old)
      }
    }
  }

  @Test func `undo changes nothing and shows the files that were changed since`() throws {
    let machine = Machine(for: .file)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.file))
    machine.file("/etc/resolv.conf", "nameserver 127.0.0.1\nnameserver 203.0.113.1\n")
    let changed = try machine.tree()
    let error = #expect(throws: SetupError.self) { try installation.undo() }
    guard case .changed(let conflicts) = error else { throw SetupError.refused("\(String(describing: error))") }
    #expect(conflicts.map(\.path) == ["/etc/resolv.conf"])
    #expect(conflicts[0].difference.contains("-nameserver 192.0.2.1\n"))
    #expect(conflicts[0].difference.contains("+nameserver 203.0.113.1\n"))
    #expect(try machine.tree() == changed)
  }

  @Test func `undo by force restores a file that was changed since`() throws {
    let machine = Machine(for: .file)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.file))
    machine.file("/etc/resolv.conf", "nameserver 203.0.113.1\n", mode: 0o600)
    _ = try installation.undo(.overwrite)
    #expect(try machine.tree() == before)
  }

  @Test(arguments: ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1"])
  func `what was there before returns, and an edit that asks httpdnsd alone is kept beside it`(address: String) throws {
    let machine = Machine(for: .file)
    var before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.file))
    machine.file("/etc/resolv.conf", "nameserver \(address)\n", mode: 0o755)
    let undone = try #require(try installation.undo(.setAside))
    #expect(undone.setAside.map(\.path) == ["/etc/resolv.conf"] && undone.left.isEmpty)
    let aside = "/etc/resolv.conf.httpdnsd-changed"
    before[aside] = try machine.root.state(of: aside)
    #expect(machine.text(aside) == "nameserver \(address)\n")
    guard case .file(_, let attributes) = before[aside] else { throw SetupError.refused("no file") }
    #expect(attributes.mode == 0o644)
    #expect(try machine.tree() == before)
  }

  @Test func `each edit of a file is kept, and one that is kept already is not kept twice`() throws {
    let machine = Machine(for: .file)
    let installation = Installation(root: machine.root)
    var asides: [String] = []
    for edit in ["nameserver 127.0.0.1\n", "nameserver 127.0.0.2\n", "nameserver 127.0.0.1\n", "nameserver ::1\n"] {
      try installation.apply(try machine.plan(.file))
      machine.file("/etc/resolv.conf", edit)
      let aside = try #require(try installation.undo(.setAside)?.setAside.first?.aside)
      #expect(machine.text(aside) == edit)
      asides.append(aside)
    }
    let first = "/etc/resolv.conf.httpdnsd-changed"
    #expect(asides == [first, "\(first).2", first, "\(first).3"])
  }

  @Test(arguments: [SetupMethod.networkManager, .file])
  func `an edited file is restored, and kept beside it, after a kill before any step of undo`(method: SetupMethod)
    throws
  {
    let path = method == .file ? "/etc/resolv.conf" : "/etc/NetworkManager/conf.d/90-httpdnsd.conf"
    let edit = "nameserver 127.0.0.1\n"
    for last in 0... {
      let machine = Machine(for: method)
      let before = try machine.root.state(of: path)
      let installation = Installation(root: machine.root)
      try installation.apply(try machine.plan(method))
      machine.file(path, edit)
      let killer = Killer(last: last)
      let isKilled = (try? installation.takeBack(.setAside, killer.writer(machine.root))) == nil
      _ = try installation.undo(.setAside)
      #expect(try machine.root.state(of: path) == before, "killed before step \(last)")
      #expect(machine.text(Installation.aside(of: path)) == edit, "killed before step \(last)")
      #expect(try installation.journal() == nil)
      guard isKilled else {
        #expect(last > 4)
        break
      }
    }
  }

  @Test(arguments: SetupPaths.hooks)
  func `a script that was changed is kept where no program runs or sources it`(path: String) throws {
    let isNetworkManager = path == SetupPaths.networkManagerHook
    let machine = Machine(for: isNetworkManager ? .networkManager : .resolvconf)
    if !isNetworkManager, path != ResolvconfKind.hooks[0] {
      machine.remove("/lib/resolvconf/list-records")
      machine.file("\(Root.parent(of: path))/libc", "", mode: 0o644)
    }
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(isNetworkManager ? .networkManager : .resolvconf))
    machine.file(path, "echo edited\n", mode: 0o755)
    let aside = try #require(try installation.undo(.setAside)?.setAside.first { $0.path == path }?.aside)
    guard case .file(let octets, let attributes) = try machine.root.state(of: aside) else {
      throw SetupError.refused("no file")
    }
    #expect(octets == Array("echo edited\n".utf8) && attributes.mode == 0o644)
    // As openresolv does, which has the widest choice.
    let script =
      "for script in '\(machine.root.real(Root.parent(of: path)))'/*; do [ ! -f \"$script\" ] || . \"$script\"; done"
    #expect(SystemCommand("sh", "-c", script).run().output.isEmpty)
  }

  @Test(arguments: SetupMethod.allCases)
  func `undo works after other programs have restored any of the files`(method: SetupMethod) throws {
    let count = try Machine(for: method).plan(method).changes.count
    for index in 0..<count {
      let machine = Machine(for: method)
      let before = try machine.tree()
      let installation = Installation(root: machine.root)
      try installation.apply(try machine.plan(method))
      let change = try #require(try installation.journal()).changes[index]
      guard !change.isFolder else { continue }
      try FileWriter(root: machine.root).put(change.before, at: change.path)
      _ = try installation.undo()
      #expect(try machine.tree() == before, "\(change.path)")
    }
  }

  @Test func `a changed drop-in of ours does not stay in effect`() throws {
    let machine = Machine(for: .networkManager)
    var before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.networkManager))
    let path = "/etc/NetworkManager/conf.d/90-httpdnsd.conf"
    machine.file(path, "[main]\ndns=none\nplugins=keyfile\n")
    #expect(try installation.undo(.setAside)?.setAside.map(\.path) == [path])
    let aside = Installation.aside(of: path)
    // The file that was kept keeps its folder.
    for path in [aside, "/etc/NetworkManager", "/etc/NetworkManager/conf.d"] {
      before[path] = try machine.root.state(of: path)
    }
    #expect(machine.text(aside)?.contains("plugins") == true)
    #expect(try machine.tree() == before)
  }

  @Test(arguments: [SetupMethod.networkManager, .file])
  func `undo leaves the resolv.conf of another program, which does not name httpdnsd`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    var before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(method))
    machine.file("/run/dhclient/resolv.conf", "nameserver 203.0.113.1\n")
    machine.link("/etc/resolv.conf", to: "../run/dhclient/resolv.conf")
    #expect(try installation.undo()?.left == ["/etc/resolv.conf"])
    for path in ["/etc/resolv.conf", "/run/dhclient", "/run/dhclient/resolv.conf", "/run"] {
      before[path] = try machine.root.state(of: path)
    }
    #expect(try machine.tree() == before)
  }

  @Test func `a file with another mode counts as changed, a removed one does not`() throws {
    let machine = Machine(for: .networkManager)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.networkManager))
    machine.remove("/etc/NetworkManager/dispatcher.d/90-httpdnsd")
    chmod(machine.folder + "/etc/NetworkManager/conf.d/90-httpdnsd.conf", 0o600)
    guard case .changed(let conflicts) = #expect(throws: SetupError.self, performing: { try installation.undo() })
    else {
      throw SetupError.refused("not refused")
    }
    #expect(conflicts.map(\.path) == ["/etc/NetworkManager/conf.d/90-httpdnsd.conf"])
  }

  @Test func `a folder of ours with foreign files stays`() throws {
    let machine = Machine(for: .resolved)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.resolved))
    machine.file("/etc/systemd/system/httpdnsd.service.d/credentials.conf", "[Service]\n")
    _ = try installation.undo()
    #expect(machine.root.names(in: "/etc/systemd/system/httpdnsd.service.d") == ["credentials.conf"])
  }

  @Test func `a failed change reverts those before it`() throws {
    let machine = Machine(for: .file)
    let before = try machine.tree()
    var plan = try machine.plan(.file)
    plan.changes.append(Change("/nowhere/at/all", from: .absent, to: .text("")))
    #expect(throws: SetupError.self) { try Installation(root: machine.root).apply(plan) }
    #expect(try machine.tree() == before)
  }

  @Test func `a file that cannot be replaced is named with what helps, and nothing is left beside it`() throws {
    let machine = Machine(for: .file)
    machine.file("/etc/full/name", "")
    let before = try machine.tree()
    #expect(throws: SetupError.system(path: "\(machine.folder)/etc/full", call: "rename", number: EISDIR)) {
      try FileWriter(root: machine.root).put(.text("text"), at: "/etc/full")
    }
    #expect(throws: SetupError.system(path: "\(machine.folder)/etc/full/name", call: "open", number: ENOTDIR)) {
      try FileWriter(root: machine.root).put(.text("text"), at: "/etc/full/name/file")
    }
    #expect(try machine.tree() == before)
    let help = "it is immutable, or its folder is (`lsattr -d` shows an i): `chattr -i /etc/resolv.conf` ends that"
    #expect(SetupError.help("/etc/resolv.conf", EPERM, isRoot: true) == help)
    #expect(SetupError.help("/etc/resolv.conf", EPERM, isRoot: false) == "this needs root")
    #expect(SetupError.help("/etc/resolv.conf", EIO, isRoot: true) == nil)
  }

  @Test(arguments: [SetupMethod.networkManager, .file])
  func `a resolv.conf that is immutable stays, and so does setup until it can be undone`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    let before = try machine.tree()
    let installation = Installation(root: machine.root)
    let writer = FileWriter(root: machine.root) { (step) throws(SetupError) in
      guard step.hasSuffix("/etc/resolv.conf"), step.hasPrefix("write") else { return }
      throw .system(path: "/etc/resolv.conf", call: "rename", number: EPERM)
    }
    try installation.apply(try machine.plan(method))
    let applied = try machine.tree()
    #expect(throws: SetupError.self) { try installation.takeBack(.refuse, writer) }
    #expect(try machine.tree() == applied)
    try installation.undo()
    #expect(try machine.tree() == before)
  }

  @Test func `a file that changes between plan and apply is not overwritten`() throws {
    let machine = Machine(for: .file)
    let plan = try machine.plan(.file)
    machine.file("/etc/resolv.conf", "nameserver 203.0.113.1\n")
    let before = try machine.tree()
    #expect(throws: SetupError.self) { try Installation(root: machine.root).apply(plan) }
    #expect(try machine.tree() == before)
  }

  @Test func `a second apply is refused until undo`() throws {
    let machine = Machine(for: .file)
    let installation = Installation(root: machine.root)
    // Both were made before either was applied, as by two programs at once.
    let (first, second) = (try machine.plan(.file), try machine.plan(.file))
    try installation.apply(first)
    let applied = try machine.tree()
    guard case .refused(let reason) = #expect(throws: SetupError.self, performing: { try installation.apply(second) })
    else {
      throw SetupError.refused("not refused")
    }
    #expect(reason.contains("`setup file` is applied already"))
    #expect(try machine.tree() == applied)
    #expect(try installation.undo()?.journal.method == .file)
  }

  @Test func `a link inside the root does not lead out of it`() throws {
    let machine = Machine(for: .file)
    let outside = Machine()
    outside.file("/etc/resolv.conf", "nameserver 203.0.113.9\n")
    let text = try #require(machine.text("/etc/resolv.conf"))
    machine.remove("/etc/resolv.conf")
    machine.file("\(outside.folder)/etc/resolv.conf", text)
    rmdir(machine.folder + "/etc")
    machine.link("/etc", to: "\(outside.folder)/etc")
    #expect(machine.text("/etc/resolv.conf") == text)
    try Installation(root: machine.root).apply(try machine.plan(.file))
    #expect(outside.text("/etc/resolv.conf") == "nameserver 203.0.113.9\n")
    #expect(machine.text("\(outside.folder)/etc/resolv.conf")?.contains("nameserver 127.0.0.1\n") == true)
  }
}
