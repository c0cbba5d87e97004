// PingPermissionTests.swift -- the advice what to set so that the kernel allows ping sockets.

import Testing

@testable import Ranking

@Suite struct `The range of groups for ping sockets` {
  @Test func `the advice includes the present range and this group, and shows what is set now`() {
    #expect(
      PingPermission.advice(present: (100, 200), group: 990)
        == "set sysctl net.ipv4.ping_group_range=\"100 990\" (it is now \"100 200\")")
    #expect(
      PingPermission.advice(present: nil, group: 990) == "set sysctl net.ipv4.ping_group_range=\"990 990\"")
  }

  @Test func `an empty range, as Debian 12 has it, is shown too`() {
    #expect(
      PingPermission.advice(present: (1, 0), group: 990)
        == "set sysctl net.ipv4.ping_group_range=\"990 990\" (it is now \"1 0\")")
  }

  @Test func `where the range allows them already, something else is to blame`() {
    #expect(
      PingPermission.advice(present: (0, 2_147_483_647), group: 990).contains(
        "something else, such as a seccomp filter"))
  }
}
