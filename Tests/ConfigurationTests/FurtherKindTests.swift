// FurtherKindTests.swift -- the keys of kinds with an id and one secret, and of plain text.

import Ciphers
import Testing

@testable import Configuration

private let secrets = ["SECRET": "TopSecret01"]

private func provider(_ text: String) throws -> Configuration.Provider {
  try configuration("[[provider]]\n\(text)", environment: secrets).providers[0]
}

private func refusals(_ text: String) -> [String] { mistakes("[[provider]]\n\(text)", environment: secrets) }

/// A kind, its least configuration, and what follows from it.
private struct FurtherKind: CustomTestStringConvertible {
  let kind: String
  /// The keys that are needed, by name.
  let keys: [(name: String, line: String)]
  let expected: Configuration.ProviderKind
  let meaning: String
  /// Its default servers, as scheme, host, port and path, with the name that is checked.
  let servers: [String]
  /// The same with the other scheme.
  let otherServers: [String]

  var text: String { (["kind = \"\(kind)\""] + keys.map(\.line)).joined(separator: "\n") }
  var testDescription: String { kind }

  static let all = [
    FurtherKind(
      kind: "baidu", keys: [("account_id", "account_id = \"100001\""), ("secret", "secret_env = \"SECRET\"")],
      expected: .baidu(.init(id: "100001", secret: Secret("TopSecret01"))), meaning: "baidu account=100001",
      servers: [
        "https://180.76.76.200:443/v4/resolve as httpdns.baidubce.com",
        "https://[240c:4006::6666]:443/v4/resolve as httpdns.baidubce.com",
      ],
      otherServers: [
        "http://180.76.76.200:80/v4/resolve as httpdns.baidubce.com",
        "http://[240c:4006::6666]:80/v4/resolve as httpdns.baidubce.com",
      ]),
    FurtherKind(
      kind: "volcengine",
      keys: [("account_id", "account_id = \"2100000001\""), ("secret_key", "secret_key_env = \"SECRET\"")],
      expected: .volcengine(.init(id: "2100000001", secret: Secret("TopSecret01"))),
      meaning: "volcengine account=2100000001",
      servers: ["https://httpdns.volcengineapi.com:443/resolve as httpdns.volcengineapi.com"],
      otherServers: ["http://httpdns.volcengineapi.com:80/resolve as httpdns.volcengineapi.com"]),
    FurtherKind(
      kind: "jdcloud", keys: [("account_id", "account_id = \"123456\""), ("key", "key_env = \"SECRET\"")],
      expected: .jdcloud(.init(id: "123456", secret: Secret("TopSecret01"))), meaning: "jdcloud account=123456",
      servers: ["http://103.224.222.208:80/v1/123456/d as 103.224.222.208"],
      otherServers: ["https://103.224.222.208:443/v1/123456/d as 103.224.222.208"]),
    FurtherKind(
      kind: "ucloud", keys: [("auth_id", "auth_id = \"abc-0001\""), ("auth_secret", "auth_secret_env = \"SECRET\"")],
      expected: .ucloud(.init(id: "abc-0001", secret: Secret("TopSecret01")), appID: nil, isScheduled: true),
      meaning: "ucloud account=abc-0001 app=- schedule=true",
      servers: ["http://httpdns.ucloud.cn:80/abc-0001/resolve as httpdns.ucloud.cn"],
      otherServers: ["https://httpdns.ucloud.cn:443/abc-0001/resolve as httpdns.ucloud.cn"]),
  ]
}

private func places(_ provider: Configuration.Provider) -> [String] {
  provider.servers.map { "\($0.scheme)://\($0.host.urlText):\($0.port)\($0.path) as \($0.tlsName)" }
}

@Test(arguments: FurtherKind.all)
private func `the least configuration of a further kind is read`(_ kind: FurtherKind) throws {
  let provider = try provider(kind.text)
  #expect(provider.kind == kind.expected && provider.name == kind.kind)
  #expect(provider.kind.meaning == kind.meaning)
  #expect(places(provider) == kind.servers)
  let other = provider.scheme == .https ? "http" : "https"
  #expect(
    places(try configuration("[[provider]]\n\(kind.text)\nscheme = \"\(other)\"", environment: secrets).providers[0])
      == kind.otherServers)
  #expect(provider.kind.hasAccount && !provider.kind.knowsDNSSECFlags)
  #expect(provider.kind.account?.hasPrefix("\(kind.kind) ") == true)
  #expect(!"\(provider)".contains("TopSecret01"))
}

@Test(arguments: FurtherKind.all)
private func `each key of a further kind's account is needed`(_ kind: FurtherKind) {
  for (name, line) in kind.keys {
    let found = refusals(kind.text.replacing(line, with: ""))
    #expect(found.count == 1 && found[0].contains("provider[\"\(kind.kind)\"].\(name)"), "\(found)")
  }
  for key in ["token = \"x\"", "cipher = \"aes\"", "access_key_id = \"x\"", "url = \"https://192.0.2.1/\""] {
    #expect(refusals(kind.text + "\n" + key).count == 1, "\(key)")
  }
}

@Test(arguments: FurtherKind.all)
private func `a further kind warns of http that leaves the machine, and of a secret in the file`(_ kind: FurtherKind)
  throws
{
  func warned(_ more: String) -> [String] {
    warnings("[[provider]]\n\(kind.text)\n\(more)", environment: secrets)
  }
  let isUsual = ["jdcloud", "ucloud"].contains(kind.kind)
  for http in isUsual ? ["", "scheme = \"http\""] : ["scheme = \"http\""] {
    #expect(warned(http).contains { $0.contains(".scheme: over http everyone on the path can read and forge") })
  }
  #expect(warned("scheme = \"http\"\nservers = [\"127.0.0.1\"]") == [])
  let secret = try #require(kind.keys.last)
  let inline = kind.text.replacing(secret.line, with: "\(secret.name) = \"TopSecret01\"")
  let lines = warnings("[[provider]]\n\(inline)", environment: secrets)
  #expect(lines.contains { $0.contains(secret.name) } && !lines.contains { $0.contains("TopSecret01") })
}

@Test func `UCloud's application and the use of its nodes can be set`() throws {
  let ucloud = try #require(FurtherKind.all.first { $0.kind == "ucloud" }).text
  let account = Configuration.SecretAccount(id: "abc-0001", secret: Secret("TopSecret01"))
  let set = try provider(ucloud + "\napp_id = \"com.example.app\"\nschedule = false").kind
  #expect(set == .ucloud(account, appID: "com.example.app", isScheduled: false))
  #expect(set.meaning == "ucloud account=abc-0001 app=com.example.app schedule=false" && !set.listsServerNames)
  #expect(try provider(ucloud + "\napp_id = \"\"").kind == .ucloud(account, appID: nil, isScheduled: true))
  #expect(try provider(ucloud).kind.listsServerNames)
  #expect(refusals(ucloud + "\napp_id = \"a b\"").count == 1)
}

@Test func `a client subnet is unused with UCloud, and one of IPv6 with JD Cloud`() {
  let unused = [
    "ucloud from-client": "this service takes no address of a client",
    "ucloud 192.0.2.0/24": "this service takes no address of a client",
    "ucloud 2001:db8::/56": "this service takes no address of a client",
    "jdcloud 2001:db8::/56": "this service takes IPv4 addresses only",
  ]
  for kind in FurtherKind.all {
    for subnet in ["from-client", "192.0.2.0/24", "2001:db8::/56"] {
      let keys = "\(kind.text)\nservers = [\"127.0.0.1\"]\nclient_subnet = \"\(subnet)\""
      let line = unused["\(kind.kind) \(subnet)"].map {
        "test.toml: provider[\"\(kind.kind)\"].client_subnet: not used: \($0)"
      }
      #expect(warnings("[[provider]]\n\(keys)", environment: secrets) == (line.map { [$0] } ?? []))
    }
  }
}

@Test func `bootstrap resolvers are of use to UCloud's nodes`() throws {
  let ucloud = try #require(FurtherKind.all.first { $0.kind == "ucloud" }).text
  let keys = "\(ucloud)\nscheme = \"https\"\nservers = [\"192.0.2.1\"]\nbootstrap = [\"192.0.2.53\"]\n"
  #expect(warnings("[[provider]]\n\(keys)", environment: secrets) == [])
  let lines = warnings("[[provider]]\n\(keys)schedule = false", environment: secrets)
  #expect(lines.map { $0.contains("bootstrap: not used: every server is an address") } == [true])
}

@Test func `a family leaves Baidu's address of that family`() throws {
  let baidu = FurtherKind.all[0]
  #expect(places(try provider(baidu.text + "\nfamily = \"ipv4\"")).count == 1)
  #expect(places(try provider(baidu.text + "\nfamily = \"ipv6\""))[0].contains("240c:4006::6666"))
}

// MARK: - Plain text

private let text = "kind = \"text\"\nurl = \"http://119.29.29.29/d\"\n"

@Test func `plain text needs a URL, and has Tencent's old form unless told otherwise`() throws {
  let provider = try provider(text)
  let url = ProviderURL(text: "http://119.29.29.29/d")!
  #expect(provider.kind == .text(.dnspod, url: url) && provider.name == "text")
  #expect(places(provider) == ["http://119.29.29.29:80/d as 119.29.29.29"])
  #expect(provider.kind.meaning == "text dnspod url=http://119.29.29.29/d")
  #expect(!provider.kind.hasAccount && provider.kind.account == nil && !provider.kind.knowsDNSSECFlags)
  let other = try configuration("[[provider]]\n\(text)dialect = \"114\"").providers[0]
  #expect(other.kind == .text(.oneOneFour, url: url))
  let missing = refusals("kind = \"text\"")
  #expect(missing.count == 1 && missing[0].contains("provider[\"text\"].url: missing"), "\(missing)")
}

@Test func `plain text can have servers of its own, and https`() throws {
  let own = "kind = \"text\"\nurl = \"https://text.example/my\"\nservers = [\"192.0.2.1\", \"http://192.0.2.2:8080/d\"]"
  #expect(
    places(try provider(own)) == [
      "https://192.0.2.1:443/my as text.example", "http://192.0.2.2:8080/d as text.example",
    ])
}

@Test(arguments: [
  ("dialect = \"dnspod2\"", "dialect"), ("dialect = 114", "dialect"), ("scheme = \"https\"", "scheme"),
  ("account_id = \"1\"", "account_id"), ("secret_env = \"SECRET\"", "secret_env"), ("method = \"get\"", "method"),
  ("schedule = true", "schedule"),
])
private func `a key that plain text does not have, or a wrong value, is one mistake`(line: String, key: String) {
  let found = refusals(text + line)
  #expect(found.count == 1 && found[0].contains("provider[\"text\"].\(key)"), "\(found)")
}

@Test func `plain text over http is warned of`() {
  let lines = warnings("[[provider]]\n\(text)", environment: secrets)
  #expect(lines.count == 1 && lines[0].contains(".url: over http everyone on the path can read and forge"), "\(lines)")
  #expect(warnings("[[provider]]\nkind = \"text\"\nurl = \"http://127.0.0.1/d\"", environment: secrets) == [])
}

@Test(arguments: ["", "url = \"http://192.0.2.1/d?x=1\""])
private func `plain text without a usable URL is one mistake and no warning`(line: String) {
  let text = "kind = \"text\"\n" + line
  #expect(refusals(text).count == 1)
  #expect(warnings("[[provider]]\n\(text)", environment: secrets) == [])
}
