// DiversionTests.swift -- the reason why programs do not ask httpdnsd although setup is applied.

import Testing

@testable import SystemSetup

@Suite struct DiversionTests {
  /// The reason on a machine, whose commands print and return what `outputs` has for them, else nothing and 0.
  private func reason(
    _ method: SetupMethod, _ machine: Machine, _ outputs: [String: (Int32, String)] = [:]
  ) -> String {
    Diversion(method, Machine.nameserver, root: machine.root) { command in
      outputs.first { command.description.contains($0.key) }.map { ($0.value.0, $0.value.1) } ?? (0, "")
    }.reason
  }

  private func engaged(_ method: SetupMethod) throws -> Machine {
    let machine = Machine(for: method)
    try Installation(root: machine.root).apply(try machine.plan(method))
    if method == .resolved {
      machine.file(SetupPaths.resolvedDropIn, Engagement.resolvedDropIn(Machine.nameserver))
    }
    return machine
  }

  @Test func `systemd-resolved may be masked, have other servers, or a link for all names`() throws {
    let machine = try engaged(.resolved)
    #expect(reason(.resolved, machine, ["is-active": (3, ""), "is-enabled": (1, "masked\n")]).contains("it is masked"))
    let domains = "Global: ~.\nLink 2 (eth0): corp.example\nLink 7 (wg0): ~.\n"
    #expect(reason(.resolved, machine, ["domain": (0, domains)]).hasPrefix("the link wg0 takes all names too"))
    machine.file("/etc/systemd/resolved.conf.d/zz.conf", "[Resolve]\nDNS=\n")
    #expect(reason(.resolved, machine).contains("resets DNS="))
    machine.remove(SetupPaths.resolvedDropIn)
    #expect(reason(.resolved, machine).contains("has not taken over"))
  }

  @Test func `a record of resolvconf's may be exclusive, or updates disabled`() throws {
    let machine = try engaged(.resolvconf)
    machine.file("/run/resolvconf/resolv.conf", "nameserver 192.0.2.1\n")
    #expect(reason(.resolvconf, machine).contains("--enable-updates"))
    machine.file("/run/resolvconf/enable-updates", "")
    #expect(reason(.resolvconf, machine).hasPrefix("resolvconf lists 192.0.2.1 first"))
    machine.file("/run/resolvconf/exclusive/0 wg0", "")
    #expect(reason(.resolvconf, machine).hasPrefix("resolvconf's record wg0 is exclusive"))
  }

  @Test func `the C library may ask no nameserver at all`() throws {
    let machine = try engaged(.file)
    #expect(reason(.file, machine).hasPrefix("the reason is unknown"))
    machine.file("/etc/nsswitch.conf", "passwd: files\nhosts: files\n")
    #expect(reason(.file, machine).contains("`hosts: files` asks no nameserver"))
  }
}
