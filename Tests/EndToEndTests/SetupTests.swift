// SetupTests.swift -- `httpdnsd setup` on folders that stand for the root of a machine.

import Foundation
import Testing

@Suite(.blocking) struct SetupTests {
  /// A root with a plain /etc/resolv.conf and a configuration.
  private struct Scene {
    let lab: Lab
    let root: String
    static let text = "# by hand\nsearch corp.example\nnameserver 192.0.2.1\n"

    init(_ lab: Lab, listen: String = "addresses = [\"127.0.0.1:53\"]") throws {
      self.lab = lab
      root = "\(lab.folder.path)/root"
      try write("var/lib/dpkg/status", "")
      try write("etc/resolv.conf", Scene.text)
      try write("etc/httpdnsd/httpdnsd.toml", "[listen]\n\(listen)\n")
      try write("usr/lib/systemd/system/httpdnsd.service", "[Service]\nExecStart=/usr/local/bin/httpdnsd run\n")
      try write("usr/local/bin/httpdnsd", "")
      chmod("\(root)/etc/resolv.conf", 0o640)
    }

    func write(_ path: String, _ text: String) throws {
      let file = URL(fileURLWithPath: "\(root)/\(path)")
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }

    func text(_ path: String) -> String? {
      (FileManager.default.contents(atPath: "\(root)/\(path)")).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Each path with its attributes and content, as a listing.
    func tree() throws -> String {
      let list = "find . -printf '%p %y %m %U:%G %l ' -type f -printf '%T@ ' -exec sha256sum {} \\; -o -print | sort"
      return try ChildProcess.run(["sh", "-c", "cd '\(root)' && \(list)"]).output
    }

    func setup(_ arguments: String...) throws -> (ending: ChildProcess.Ending, output: String, error: String) {
      try lab.run(["setup"] + arguments + ["--root", root])
    }
  }

  private func withScene(_ listen: String = "addresses = [\"127.0.0.1:53\"]", _ body: (Scene) throws -> Void) throws {
    try withLab { try body(try Scene($0, listen: listen)) }
  }

  @Test func `setup shows what it will change and changes nothing`() throws {
    try withScene { scene in
      let before = try scene.tree()
      let (ending, output, error) = try scene.setup("file")
      #expect(ending == .exited(0))
      #expect(error.isEmpty)
      #expect(output.contains("--- /etc/resolv.conf"))
      #expect(output.contains("+nameserver 127.0.0.1\n nameserver 192.0.2.1\n"))
      let next = "--apply makes these changes, and `httpdnsd setup undo` reverts them"
      #expect(output.hasSuffix("nothing was changed; \(next)\n"))
      #expect(try scene.tree() == before)
    }
  }

  @Test func `setup without a method takes a configuration file too`() throws {
    try withScene { scene in
      let file = try scene.lab.file("[listen]\naddresses = [\"192.0.2.7:53\"]")
      let (ending, output, _) = try scene.setup("--config", file)
      #expect(ending == .exited(0) && output.contains("not yet: listen.addresses has no loopback address"), "\(output)")
    }
  }

  @Test func `setup reads the file that HTTPDNSD_CONFIG names, except for another root`() throws {
    try withScene { scene in
      let variables = ["HTTPDNSD_CONFIG": "/nonexistent/x.toml"]
      let own = try scene.lab.run(["setup", "file"], environment: variables)
      #expect(own.error.contains("/nonexistent/x.toml: no such file; "), "\(own.error)")
      let other = try scene.lab.run(["setup", "file", "--root", scene.root], environment: variables)
      #expect(other.ending == .exited(0), "\(other.error)")
    }
  }

  @Test func `setup with --apply changes it, and undo restores every octet`() throws {
    try withScene { scene in
      let before = try scene.tree()
      #expect(try scene.setup("file", "--apply").ending == .exited(0))
      #expect(scene.text("etc/resolv.conf")?.contains("nameserver 127.0.0.1\nnameserver 192.0.2.1\n") == true)
      #expect(try scene.setup("status").output.hasPrefix("applied: file, for 127.0.0.1\n"))
      #expect(try scene.setup("file", "--apply").output.hasPrefix("this is applied already"))
      #expect(try scene.setup("undo").output == "`setup file` is undone\n")
      #expect(try scene.tree() == before)
      #expect(try scene.setup("undo").output == "nothing is applied\n")
      let quiet = try scene.setup("undo", "--quiet")
      #expect(quiet.ending == .exited(0) && quiet.output.isEmpty && quiet.error.isEmpty)
    }
  }

  @Test(arguments: ["resolved", "networkmanager", "resolvconf", "file"])
  func `what setup leaves is readable by all users under any umask of root's`(method: String) throws {
    try withScene { scene in
      try scene.write("usr/lib/systemd/systemd-resolved", "")
      try scene.write("usr/sbin/NetworkManager", "")
      try scene.write("usr/sbin/resolvconf", "")
      try scene.write("lib/resolvconf/list-records", "")
      try scene.write("run/systemd/container", "")
      // Whatever is closed to others, but for what is setup's alone.
      func closed() throws -> [Substring] {
        let filter = "! -name journal ! -name '*lock' ! -type l \\( ! -perm -o+r -o -type d ! -perm -o+x \\)"
        return try ChildProcess.run(["sh", "-c", "cd '\(scene.root)' && find . \(filter)"]).output.split(
          separator: "\n")
      }
      let before = try closed()
      let words = ["sh", "-c", "umask 077; exec \"$@\"", "sh", Programs.daemon, "setup"]
      for command in [[method, "--apply"], ["resume"], ["renew"]] {
        let (ending, _, error) = try ChildProcess.run(words + command + ["--root", scene.root])
        #expect(ending == .exited(0), "\(error)")
      }
      #expect(Set(try closed()).isSubset(of: before))
    }
  }

  @Test func `undo refuses if the file was changed since, and shows how`() throws {
    try withScene { scene in
      let before = try scene.tree()
      _ = try scene.setup("file", "--apply")
      let text = "nameserver 127.0.0.1\nnameserver 203.0.113.1\n"
      try scene.write("etc/resolv.conf", text)
      let (ending, _, error) = try scene.setup("undo")
      #expect(ending == .exited(1))
      #expect(error.contains("/etc/resolv.conf was changed since:\n"))
      #expect(error.contains("+nameserver 203.0.113.1\n"))
      #expect(error.contains("--force"))
      #expect(scene.text("etc/resolv.conf") == text)
      #expect(try scene.setup("undo", "--force").ending == .exited(0))
      #expect(try scene.tree() == before)
    }
  }

  @Test func `undo with --keep-changed restores the file and keeps the changed one beside it`() throws {
    try withScene { scene in
      _ = try scene.setup("file", "--apply")
      // All other servers are deleted: without httpdnsd no name would be found.
      try scene.write("etc/resolv.conf", "nameserver 127.0.0.1\n")
      let (ending, output, error) = try scene.setup("undo", "--quiet", "--keep-changed")
      #expect(ending == .exited(0) && output.isEmpty)
      let aside = "the changed file is /etc/resolv.conf.httpdnsd-changed"
      #expect(error == "httpdnsd: /etc/resolv.conf was changed since setup: what was there before is back, \(aside)\n")
      #expect(scene.text("etc/resolv.conf") == Scene.text)
      #expect(scene.text("etc/resolv.conf.httpdnsd-changed") == "nameserver 127.0.0.1\n")
      #expect(try scene.setup("status").output.hasPrefix("nothing is applied\n"))
    }
  }

  @Test func `undo leaves a resolv.conf that another program has written since`() throws {
    try withScene { scene in
      _ = try scene.setup("file", "--apply")
      try scene.write("etc/resolv.conf", "nameserver 203.0.113.1\n")
      let (ending, output, error) = try scene.setup("undo")
      #expect(ending == .exited(0) && output == "`setup file` is undone\n")
      #expect(error == "httpdnsd: /etc/resolv.conf does not name httpdnsd any more and stays as it is\n")
      #expect(scene.text("etc/resolv.conf") == "nameserver 203.0.113.1\n")
      #expect(try scene.setup("undo").output == "nothing is applied\n")
    }
  }

  @Test func `undo restores every octet after setup was killed at any moment`() throws {
    try withScene { scene in
      let before = try scene.tree()
      for round in 0..<20 {
        let process = try ChildProcess([Programs.daemon, "setup", "file", "--apply", "--root", scene.root])
        usleep(UInt32(round) * 1_500)
        process.signal(SIGKILL)
        _ = try process.waitForEnd()
        #expect(try scene.setup("undo").ending == .exited(0))
        #expect(try scene.tree() == before)
      }
    }
  }

  @Test func `a resolv.conf of a program is refused with the way for it`() throws {
    try withScene { scene in
      try scene.write("etc/resolv.conf", "# Generated by NetworkManager\nnameserver 192.0.2.1\n")
      let (ending, _, error) = try scene.setup("file", "--apply", "--force")
      #expect(ending == .exited(1))
      #expect(error == "httpdnsd: /etc/resolv.conf belongs to networkmanager: `httpdnsd setup networkmanager`\n")
      let expected = "nothing is applied\n/etc/resolv.conf is NetworkManager's: `httpdnsd setup networkmanager`\n"
      #expect(try scene.setup().output == expected + "not yet: NetworkManager is not installed\n")
      try scene.write("usr/sbin/NetworkManager", "")
      #expect(try scene.setup().output == expected)
    }
  }

  @Test func `commands are not run on another root`() throws {
    try withScene { scene in
      try scene.write("usr/lib/systemd/systemd-resolved", "")
      let (ending, output, error) = try scene.setup("resolved", "--apply")
      #expect(ending == .exited(0), "\(error)")
      #expect(output.contains("not run, because of --root: systemctl daemon-reload\n"))
      let hooks = try #require(scene.text("etc/systemd/system/httpdnsd.service.d/nameserver.conf"))
      #expect(
        hooks.contains("\nExecStartPost=+-/bin/sh -c \"exec '/usr/local/bin/httpdnsd' setup resume --service\"\n"))
    }
  }

  @Test func `hooks of another root start its unit's program, or nothing if it is missing`() throws {
    try withScene { scene in
      try scene.write("usr/sbin/NetworkManager", "")
      try scene.write("etc/resolv.conf", "# Generated by NetworkManager\nnameserver 192.0.2.1\n")
      #expect(try scene.setup("networkmanager").output.contains("+'/usr/local/bin/httpdnsd' setup renew --quiet\n"))
      try scene.write("etc/systemd/system/httpdnsd.service", "[Service]\nExecStart=/opt/httpdnsd run\n")
      let before = try scene.tree()
      let (ending, output, error) = try scene.setup("networkmanager", "--apply")
      #expect(ending == .exited(1))
      #expect(output.contains("+'/opt/httpdnsd' setup renew --quiet\n"))
      #expect(error.contains("\(scene.root)/opt/httpdnsd, which hooks would start, is missing"))
      #expect(try scene.tree() == before)
    }
  }

  @Test func `pause, resume and renew print what they did`() throws {
    try withScene { scene in
      for command in ["pause", "resume", "renew"] {
        #expect(try scene.setup(command).output == "nothing is applied\n")
      }
      try scene.write("usr/lib/systemd/systemd-resolved", "")
      try scene.write("run/systemd/container", "")
      let before = try scene.tree()
      _ = try scene.setup("resolved", "--apply")
      let told = "not run, because of --root: systemctl try-reload-or-restart systemd-resolved.service\n"
      #expect(try scene.setup("resume").output == told + "systemd-resolved now asks httpdnsd\n")
      #expect(scene.text("run/systemd/resolved.conf.d/httpdnsd.conf")?.contains("DNS=127.0.0.1\n") == true)
      #expect(try scene.setup("pause").output.hasPrefix(told + "names are resolved as before setup until "))
      #expect(try scene.setup("resume", "--quiet").output.isEmpty)
      #expect(try scene.setup("renew").output == "`setup resolved` lists no servers of the network: nothing to do\n")
      #expect(try scene.setup("undo", "--quiet").output.isEmpty)
      #expect(try scene.tree() == before)
    }
  }

  @Test(arguments: [
    (["undo", "--bogus"], "Usage: httpdnsd setup undo "),
    (["file", "--nameserver", "x"], "Usage: httpdnsd setup file "),
    (["resolved", "--program", "x"], "Usage: httpdnsd setup resolved "), (["--bogus"], "Usage: httpdnsd setup status "),
    (["status", "--root", "/nowhere"], "Error: --root: no folder /nowhere\nUsage: httpdnsd setup status "),
  ])
  func `a mistake on the command line shows how the subcommand is used`(arguments: [String], usage: String) throws {
    try withLab { lab in
      let (ending, output, error) = try lab.run(["setup"] + arguments)
      #expect(ending == .exited(64))
      #expect(output.isEmpty && error.contains(usage))
    }
  }

  @Test(arguments: [
    ("addresses = [\"[::1]:5300\", \"127.0.0.1:53\"]", "nameserver 127.0.0.1\n"),
    ("addresses = [\"192.0.2.7:53\", \"[::]:53\"]", "nameserver ::1\n"), ("", "nameserver 127.0.0.1\n"),
  ])
  func `setup uses the first loopback address, port 53 preferred`(listen: String, line: String) throws {
    try withScene(listen) { scene in
      let output = try scene.setup("file").output
      #expect(output.contains("+\(line)"))
    }
  }

  @Test(arguments: [
    ("addresses = [\"192.0.2.7:53\"]", "listen.addresses has no loopback address"),
    ("addresses = [\"127.0.0.1:5300\"]", "resolv.conf has no ports"), ("adresses = []", "listen.adresses"),
  ])
  func `an address that programs cannot ask is refused`(listen: String, reason: String) throws {
    try withScene(listen) { scene in
      let (ending, _, error) = try scene.setup("file", "--apply", "--force")
      #expect(ending == .exited(1))
      #expect(error.contains(reason))
      #expect(scene.text("etc/resolv.conf") == Scene.text)
    }
  }
}
