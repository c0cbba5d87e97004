// EngagementTests.swift -- the machine's names go to the service while it runs, and not once too often.

import Testing

@testable import SystemSetup

@Suite struct EngagementTests {
  /// Notes what would be run.
  private final class Commands {
    var seen: [String] = []
    var jobs = ""

    func take() -> [String] {
      defer { seen = [] }
      return seen.filter {
        !$0.contains("list-jobs") && !$0.contains("is-system-running") && !$0.contains("reset-failed")
      }
    }
  }

  private struct Scene {
    let machine: Machine
    let commands = Commands()
    var engagement: Engagement

    init(_ method: SetupMethod) throws {
      machine = Machine(for: method)
      try Installation(root: machine.root).apply(try machine.plan(method))
      let journal = try #require(try Installation(root: machine.root).journal())
      engagement = Engagement(journal, root: machine.root)
      engagement.run = { [commands] command in
        commands.seen.append("\(command)")
        return (0, command.description.contains("list-jobs") ? commands.jobs : "")
      }
      engagement.now = { 1_000 }
    }
  }

  private static let reload = "systemctl try-reload-or-restart systemd-resolved.service"

  @Test func `systemd-resolved asks the service while it runs`() throws {
    let scene = try Scene(.resolved)
    #expect(try scene.engagement.resume(isService: true).isEmpty)
    #expect(scene.machine.text(SetupPaths.resolvedDropIn)?.hasSuffix("[Resolve]\nDNS=127.0.0.1\nDomains=~.\n") == true)
    #expect(scene.commands.take() == [EngagementTests.reload])
    #expect(try scene.engagement.pauseForService(result: "success").isEmpty)
    #expect(scene.machine.text(SetupPaths.resolvedDropIn) == nil)
    #expect(scene.commands.take() == [EngagementTests.reload])
  }

  @Test func `a restart of the service leaves systemd-resolved alone`() throws {
    let scene = try Scene(.resolved)
    _ = try scene.engagement.resume(isService: true)
    _ = scene.commands.take()
    scene.commands.jobs = "12 httpdnsd.service restart running\n"
    _ = try scene.engagement.pauseForService(result: "success")
    _ = try scene.engagement.resume(isService: true)
    #expect(scene.commands.take().isEmpty)
    #expect(scene.engagement.isEngaged == true)
  }

  @Test func `a service that ran for a while and was killed is waited for`() throws {
    var scene = try Scene(.resolved)
    _ = try scene.engagement.resume(isService: true)
    _ = scene.commands.take()
    scene.engagement.now = { 1_000 + Engagement.steady }
    _ = try scene.engagement.pauseForService(result: "signal")
    #expect(scene.commands.take().isEmpty)
    #expect(scene.engagement.isEngaged == true)
    // And did not become ready again.
    _ = try scene.engagement.pauseForService(result: "exit-code")
    #expect(scene.commands.take() == [EngagementTests.reload])
    #expect(scene.engagement.isEngaged == false)
  }

  @Test func `a service that fails soon after its start is paused`() throws {
    let scene = try Scene(.resolved)
    _ = try scene.engagement.resume(isService: true)
    _ = try scene.engagement.pauseForService(result: "watchdog")
    #expect(scene.engagement.isEngaged == false)
  }

  @Test func `resolvconf has our record while the service runs`() throws {
    let scene = try Scene(.resolvconf)
    _ = try scene.engagement.resume(isService: true)
    #expect(scene.commands.take() == ["printf 'nameserver 127.0.0.1\\n' | resolvconf -a lo.httpdnsd"])
    _ = try scene.engagement.pause()
    #expect(scene.commands.take() == ["resolvconf -d lo.httpdnsd"])
  }

  @Test func `a command that fails is reported`() throws {
    var scene = try Scene(.resolvconf)
    scene.engagement.run = { _ in (3, "") }
    #expect(try scene.engagement.pause() == ["`resolvconf -d lo.httpdnsd` failed with exit code 3"])
  }

  @Test func `NetworkManager's servers are followed, and undo removes the rewritten file`() throws {
    let machine = Machine(for: .networkManager)
    var before = try machine.tree()
    let installation = Installation(root: machine.root)
    try installation.apply(try machine.plan(.networkManager))
    #expect(try installation.renew() == .same(path: SetupPaths.resolver))
    machine.file("/run/NetworkManager/no-stub-resolv.conf", "nameserver 198.51.100.7\n")
    #expect(try installation.renew() == .written(path: SetupPaths.resolver))
    #expect(machine.text("/etc/resolv.conf")?.contains("nameserver 127.0.0.1\nnameserver 198.51.100.7\n") == true)
    _ = try installation.undo()
    let path = "/run/NetworkManager/no-stub-resolv.conf"
    before[path] = try machine.root.state(of: path)
    #expect(try machine.tree() == before)
  }

  @Test(arguments: [SetupMethod.networkManager, .resolvconf])
  func `a file that an earlier version began with other words is followed, and undone`(method: SetupMethod) throws {
    let machine = Machine(for: method)
    var before = try machine.tree()
    let installation = Installation(root: machine.root)
    var plan = try machine.plan(method)
    let index = try #require(plan.changes.firstIndex { $0.kind == .ours })
    let change = plan.changes[index]
    let rest = try #require(change.after.text).drop { $0 != "\n" }
    let first = "# Asked first; `httpdnsd setup undo` takes this back."
    plan.changes[index] = Change(change.path, from: change.before, to: .text(first + rest), .ours)
    try installation.apply(plan)
    let source = method == .resolvconf ? "/run/resolvconf/interface/eth0.dhclient" : FollowingFiles.networkManagerFile
    for server in ["198.51.100.7", "198.51.100.8"] {
      machine.file(source, "nameserver \(server)\n")
      #expect(try installation.renew() == .written(path: change.path))
      let text = try #require(machine.text(change.path))
      #expect(text.hasPrefix("\(first)\n") && text.contains("nameserver \(server)\n"))
    }
    // A version has begun with words of its own.
    machine.file(change.path, ResolverText.comment + rest)
    #expect(try installation.renew() == .written(path: change.path))
    _ = try installation.undo()
    before[source] = try machine.root.state(of: source)
    #expect(try machine.tree() == before)
  }

  @Test func `a resolv.conf that another program has put there is not rewritten`() throws {
    let scene = try Scene(.networkManager)
    let text = "# Generated by dhcpcd\nnameserver 198.51.100.7\n"
    scene.machine.file("/etc/resolv.conf", text)
    #expect(try scene.engagement.renew() == .replaced(path: SetupPaths.resolver))
    #expect(scene.machine.text("/etc/resolv.conf") == text)
  }

  @Test(arguments: [SetupMethod.resolved, .resolvconf])
  func `the service's last resort pauses without the program`(method: SetupMethod) throws {
    let hooks = try #require(try Scene(method).machine.text(SetupPaths.unitDropIn))
    let command =
      method == .resolved ? "rm -f /run/systemd/resolved.conf.d/httpdnsd.conf;" : "resolvconf -d lo.httpdnsd"
    #expect(hooks.contains("\nExecStopPost=+-/bin/sh -c \"'/usr/bin/httpdnsd' setup pause --service || "))
    #expect(hooks.contains(command))
  }

  @Test(arguments: ["interface", "interfaces", "keys"])
  func `resolvconf's new records are followed`(folder: String) throws {
    let scene = try Scene(.resolvconf)
    scene.machine.file("/run/resolvconf/\(folder)/eth0.dhclient", "nameserver 198.51.100.7\n")
    #expect(try scene.engagement.renew() == .written(path: SetupPaths.network))
    #expect(scene.machine.text(SetupPaths.network)?.hasSuffix("\nnameserver 198.51.100.7\n") == true)
  }
}
