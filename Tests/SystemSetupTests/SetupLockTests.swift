// SetupLockTests.swift -- setup, undo and the service's hooks do not get between each other's steps.

import Glibc
import Testing

@testable import SystemSetup

@Suite struct SetupLockTests {
  /// How often a process had to wait.
  private final class Count {
    var value = 0
  }

  private static func engagement(_ journal: Journal, _ machine: Machine) -> Engagement {
    var engagement = Engagement(journal, root: machine.root)
    engagement.run = { _ in (0, "") }
    return engagement
  }

  private static func undo(_ installation: Installation, _ machine: Machine) throws {
    try installation.undo { journal throws(SetupError) in
      _ = try engagement(journal, machine).pause()
      try engagement(journal, machine).forget()
    }
  }

  @Test func `a start of the service that is overtaken by undo leaves nothing behind`() throws {
    let machine = Machine(for: .resolved)
    var hook = Installation(root: machine.root)
    try hook.apply(try machine.plan(.resolved))
    let other = hook
    hook.willLock = { #expect(throws: Never.self) { try SetupLockTests.undo(other, machine) } }
    let problems = try hook.whileApplied { journal throws(SetupError) in
      try SetupLockTests.engagement(journal, machine).resume(isService: true)
    }
    #expect(problems == nil)
    #expect(!machine.root.exists(SetupPaths.resolvedDropIn))
    #expect(!machine.root.exists(SetupPaths.readyMark))
    #expect(!machine.root.exists(SetupPaths.state))
  }

  @Test func `undo waits for a running hook, and reverts its changes`() throws {
    let machine = Machine(for: .resolved)
    var installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.resolved))
    let applied = try machine.tree()
    installation.patience.attempts = 0
    let hook = installation
    _ = try hook.whileApplied { journal throws(SetupError) in
      guard case .refused = #expect(throws: SetupError.self, performing: { try installation.undo() }) else {
        throw SetupError.refused("not refused")
      }
      #expect((try? machine.tree()) == applied)
      return try SetupLockTests.engagement(journal, machine).resume(isService: true)
    }
    #expect(machine.root.exists(SetupPaths.resolvedDropIn))
    try SetupLockTests.undo(installation, machine)
    #expect(!machine.root.exists(SetupPaths.resolvedDropIn))
  }

  @Test func `undo reverts what a hook did while undo was running`() throws {
    let machine = Machine(for: .resolved)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.resolved))
    let releases = Count()
    try installation.undo { journal throws(SetupError) in
      releases.value += 1
      let engagement = SetupLockTests.engagement(journal, machine)
      _ = try engagement.pause()
      // A hook that knows of no lock.
      if releases.value == 1 { _ = try engagement.resume(isService: false) }
    }
    #expect(releases.value == 2)
    #expect(!machine.root.exists(SetupPaths.resolvedDropIn))
  }

  @Test func `only root's programs can take the locks`() throws {
    let machine = Machine(for: .resolvconf)
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.resolvconf))
    _ = try installation.renew()
    for matter in SetupLock.Matter.allCases {
      guard case .file(_, let attributes) = try machine.root.state(of: matter.path) else {
        throw SetupError.refused("no \(matter.path)")
      }
      #expect(attributes.mode == 0o600 && attributes.user == geteuid())
    }
    // As any user may do, since the daemon has to read the folder.
    let folder = open(machine.root.real(SetupPaths.state), O_RDONLY | O_DIRECTORY)
    defer { close(folder) }
    #expect(flock(folder, LOCK_EX | LOCK_NB) == 0)
    var hasty = installation
    hasty.patience.attempts = 0
    #expect(try hasty.undo()?.journal.method == .resolvconf)
  }

  @Test func `renew after undo writes nothing`() throws {
    let machine = Machine(for: .resolvconf)
    let before = try machine.tree()
    var hook = Installation(root: machine.root)
    try hook.apply(try machine.plan(.resolvconf))
    let other = hook
    hook.willLock = { #expect(throws: Never.self) { try other.undo() } }
    #expect(try hook.renew() == nil)
    #expect(try machine.tree() == before)
  }

  @Test func `resolvconf's hook renews while a hook of the service holds the lock`() throws {
    let machine = Machine(for: .resolvconf)
    var installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.resolvconf))
    installation.patience.attempts = 0
    let hook = installation
    let renewal = try hook.whileApplied { _ throws(SetupError) in
      machine.file("/run/resolvconf/interface/eth0.dhclient", "nameserver 198.51.100.7\n")
      return try hook.renew()
    }
    #expect(renewal == .written(path: SetupPaths.network))
    // And while undo gives the names back.
    let renewals = Count()
    try installation.undo { _ throws(SetupError) in
      if try hook.renew() != nil { renewals.value += 1 }
    }
    #expect(renewals.value == 1)
    #expect(!machine.root.exists(SetupPaths.state))
  }

  @Test(arguments: SetupLock.Matter.allCases)
  func `a waiting process locks the current file, not the removed one`(matter: SetupLock.Matter) throws {
    let machine = Machine()
    var first: SetupLock? = try SetupLock(machine.root, matter, SetupLock.Patience())
    #expect(first != nil)
    let pauses = Count()
    let waiting = SetupLock.Patience(
      attempts: 3,
      rest: {
        pauses.value += 1
        SetupLock.removeFolder(machine.root, having: [matter])
        first = nil
      })
    let second = try SetupLock(machine.root, matter, waiting)
    #expect(pauses.value == 1)
    #expect(machine.root.exists(SetupPaths.state))
    #expect(throws: SetupError.self) { try SetupLock(machine.root, matter, SetupLock.Patience(attempts: 0)) }
    withExtendedLifetime(second) {}
  }
}
