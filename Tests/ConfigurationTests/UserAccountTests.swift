// UserAccountTests.swift -- users of the machine, and the advice if one cannot read a secret.

import Testing

@testable import Configuration

@Suite struct `A user of the machine` {
  private static let users = "root:x:0:0:root:/root:/bin/sh\nhttpdnsd:x:998:997:DNS:/:/usr/sbin/nologin\n"

  @Test func `a user is found by name and by id`() throws {
    try withFile(Self.users) { directory, file in
      let account = try #require(UserAccount("httpdnsd", in: file))
      #expect(account.user == 998 && account.group == 997)
      #expect(UserAccount(number: 998, in: file) == account)
      #expect(UserAccount("DNS", in: file) == nil && UserAccount(number: 997, in: file) == nil)
      #expect(UserAccount("root", in: "\(directory)/none") == nil)
    }
  }

  @Test func `a permanent user is advised to own the secret`() {
    let reader = Reader(998, "httpdnsd")
    #expect(reader.user == "user httpdnsd")
    #expect(reader.secretRemedy.contains("user httpdnsd owns (chown httpdnsd)"))
    #expect(Reader(65_532, nil).secretRemedy.contains("user 65532 owns (chown 65532)"))
    #expect(Reader(0, "root").user == "root")
  }

  @Test func `a user who is no service is advised to use sudo where the secret is the service's`() {
    let advice = "; if it is the service's, run this with sudo"
    #expect(Reader.withCommand(1000, "alice").secretRemedy == Reader(1000, "alice").secretRemedy + advice)
    for (number, name) in [(998, "httpdnsd"), (0, "root"), (65_532, nil)] as [(UInt32, String?)] {
      #expect(Reader.withCommand(number, name).secretRemedy == Reader(number, name).secretRemedy)
    }
  }

  @Test(arguments: [61_184, 62_503, 65_519] as [UInt32])
  func `a dynamic user is advised to use a credential`(number: UInt32) {
    let reader = Reader(number, nil)
    #expect(!reader.secretRemedy.contains("chown") && reader.secretRemedy.contains("LoadCredential="))
  }
}

@Test func `the keys of secret files are reported, their paths are not`() throws {
  try withFile("canary") { _, path in
    let account = "[[provider]]\nname = \"one\"\naccount_id = \"999999\"\naccess_key_id = \"id\"\n"
    guard case .success(let loaded) = parse("\(account)access_key_secret_file = \"\(path)\"") else {
      Issue.record("refused")
      return
    }
    #expect(loaded.secretFiles == ["provider[\"one\"].access_key_secret_file"])
  }
}
