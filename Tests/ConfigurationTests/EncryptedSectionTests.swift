// EncryptedSectionTests.swift -- the `[encrypted]` section: its keys, what they need beside them, and what they open.

import Configuration
import DNSWire
import Testing

/// Messages without the name of the file.
private func short(_ lines: [String]) -> [String] { lines.map { String($0.dropFirst("test.toml: ".count)) } }

private func faults(_ text: String) -> [String] { short(mistakes("[encrypted]\n" + text)) }

private func remarks(_ text: String) -> [String] { short(warnings("[encrypted]\n" + text)) }

private let pair = "certificate_file = \"/tls/chain.pem\"\nkey_file = \"/tls/key.pem\"\n"
private let plain = "doh_plain = [\"127.0.0.1:8053\"]\n"

@Suite struct EncryptedSectionTests {
  @Test func `without the section no listener exists`() throws {
    let encrypted = try configuration("").encrypted
    #expect(encrypted == Configuration().encrypted)
    #expect(!encrypted.hasListeners && !encrypted.usesCertificate)
    #expect(messages("[encrypted]") == [])
  }

  @Test func `every key is read`() throws {
    let text = """
      [encrypted]
      dot = ["0.0.0.0:853", "[::]:853"]
      doh = ["192.0.2.1:443"]
      doh_plain = ["192.0.2.1:8053"]
      name = "DNS.example.com"
      certificate_file = "/tls/chain.pem"
      key_file = "/tls/key.pem"
      path = "/a/b-c"
      json = true
      allow = ["listen", "connected", "10.0.0.0/8"]
      tokens_file = "/tls/tokens"
      proxy_protocol = ["192.0.2.7"]
      forwarded_from = ["2001:db8::/64"]
      connections = 1
      per_client = 2
      new_per_second = 0
      idle = "10m"
      ddr = false
      published = ["203.0.113.5", "2001:db8::5"]
      """
    let encrypted = try configuration(text).encrypted
    #expect(messages(text) == [])
    #expect(encrypted.dot.map(\.description) == ["0.0.0.0:853", "[::]:853"])
    #expect(encrypted.doh.map(\.description) == ["192.0.2.1:443"])
    #expect(encrypted.dohPlain.map(\.description) == ["192.0.2.1:8053"])
    #expect(encrypted.name?.text == "dns.example.com.")
    #expect(encrypted.certificateFile == "/tls/chain.pem")
    #expect(encrypted.keyFile == "/tls/key.pem")
    #expect(encrypted.path == "/a/b-c")
    #expect(encrypted.json && !encrypted.ddr)
    #expect(encrypted.allow.map(\.description) == ["listen", "connected", "10.0.0.0/8"])
    #expect(encrypted.tokensFile == "/tls/tokens")
    #expect(encrypted.proxyProtocol.map(\.description) == ["192.0.2.7/32"])
    #expect(encrypted.forwardedFrom.map(\.description) == ["2001:db8::/64"])
    #expect(encrypted.connections == 1 && encrypted.perClient == 2 && encrypted.newPerSecond == 0)
    #expect(encrypted.idle == .seconds(600))
    #expect(encrypted.published.map(\.description) == ["203.0.113.5", "2001:db8::5"])
    #expect(encrypted.hasListeners && encrypted.usesCertificate)
  }

  @Test(arguments: [
    "dot = \"0.0.0.0:853\"", "dot = [\"0.0.0.0\"]", "doh = [\"dns.example:443\"]",
    "doh = [\"1.2.3.4:443\", \"1.2.3.4:443\"]",
    "name = \"192.0.2.1\"", "name = \"a b\"", "name = \"*.example\"", "name = \".\"", "certificate_file = \"a.pem\"",
    "key_file = 1", "path = \"dns-query\"", "path = \"/\"", "path = \"/a/\"", "path = \"/a//b\"", "path = \"/a?b\"",
    "path = \"/../a\"", "path = \"/ü\"", "path = \"/\(String(repeating: "a", count: 128))\"", "path = \"\"", "json = 1",
    "allow = []", "allow = [\"all\"]", "allow = \"listen\"", "tokens_file = \"tokens\"",
    "proxy_protocol = [\"connected\"]",
    "proxy_protocol = [\"10.0.0.1/8\"]", "forwarded_from = [\"::ffff:10.0.0.1\"]", "connections = 0", "per_client = 0",
    "new_per_second = -1", "idle = \"999ms\"", "idle = \"601s\"", "ddr = \"yes\"", "published = [\"0.0.0.0\"]",
    "published = [\"::\"]", "published = [\"fe80::1\"]", "published = [\"dns.example\"]",
  ])
  func `what is not allowed is one mistake, which names the key`(line: String) {
    let found = faults(line)
    #expect(found.count == 1)
    #expect(found.first?.hasPrefix("encrypted.\(line.prefix { $0 != " " })") == true, "\(found)")
  }

  @Test func `DoT and DoH need certificate and key, plain DoH does not`() {
    let empty = pair.replacing("/tls/chain.pem", with: "").replacing("/tls/key.pem", with: "")
    for key in ["dot", "doh"] {
      let listener = "\(key) = [\"192.0.2.1:853\"]\n"
      for text in [listener, listener + empty] {
        #expect(
          faults(text) == [
            "encrypted.certificate_file: needed with dot and doh; give a PEM file with the certificate and its chain",
            "encrypted.key_file: needed with dot and doh; give a PEM file with the certificate's key",
          ])
      }
      #expect(faults(listener + pair) == [])
    }
    #expect(messages("[encrypted]\n\(plain)") == [])
  }

  @Test func `an address that cannot be opened beside another one is refused`() {
    let text = """
      dot = ["192.0.2.1:853", "0.0.0.0:53"]
      doh = ["0.0.0.0:853", "[::1]:9353", "192.0.2.1:0"]
      doh_plain = ["127.0.0.1:853"]
      """
    let found = mistakes("[web]\naddress = \"[::1]:9353\"\n[encrypted]\n\(pair)\(text)")
    #expect(
      short(found) == [
        "encrypted.dot[#2]: 0.0.0.0:53 is already served: 127.0.0.1:53 in listen.addresses; use another port or address",
        "encrypted.doh[#1]: 0.0.0.0:853 is already served: 192.0.2.1:853 in encrypted.dot; use another port or address",
        "encrypted.doh[#2]: [::1]:9353 is already served: [::1]:9353 in web.address; use another port or address",
        "encrypted.doh_plain[#1]: 127.0.0.1:853 is already served: 0.0.0.0:853 in encrypted.doh; use another port or address",
      ])
    #expect(
      faults("\(pair)dot = [\"0.0.0.0:853\", \"127.0.0.1:853\"]") == [
        "encrypted.dot[#2]: 127.0.0.1:853 is already served by 0.0.0.0:853; remove one of them"
      ])
    #expect(
      remarks("\(pair)dot = [\"[::]:853\"]") == [
        "encrypted.dot: [::]:853 serves no client over IPv4; add \"0.0.0.0:853\" for them"
      ])
  }

  @Test func `plain DoH beyond loopback needs a proxy`() {
    let text = "doh_plain = [\"[::1]:8053\", \"192.0.2.1:8053\"]\n"
    #expect(
      faults(text) == [
        "encrypted.doh_plain[#2]: 192.0.2.1:8053 would serve the network without TLS; use a loopback address, or name the "
          + "TLS proxy in proxy_protocol or forwarded_from"
      ])
    #expect(faults(text + "proxy_protocol = [\"192.0.2.2\"]") == [])
    #expect(faults(text + "forwarded_from = [\"192.0.2.2\"]") == [])
  }

  @Test func `tokens need a name`() {
    let text = plain + "tokens_file = \"/tls/tokens\"\n"
    #expect(
      faults(text) == ["encrypted.tokens_file: tokens need a name that devices can be given; set encrypted.name"])
    #expect(faults(text + "name = \"dns.example\"") == [])
  }

  @Test func `JSON and the path of DNS over HTTPS are two places`() {
    for path in ["/resolve", "/resolve/dns"] {
      #expect(faults(plain + "path = \"\(path)\"") == [])
      #expect(
        faults(plain + "json = true\npath = \"\(path)\"") == [
          "encrypted.path: \"\(path)\" belongs to json = true; expected another path than /resolve"
        ])
    }
    #expect(faults(plain + "json = true\npath = \"/resolver\"") == [])
  }

  @Test(arguments: ["proxy_protocol", "forwarded_from"]) func `proxies are not loopback by accident`(key: String) {
    for prefix in ["0.0.0.0/0", "126.0.0.0/7", "::/0", "::/127"] {
      #expect(
        faults(plain + "\(key) = [\"192.0.2.1\", \"\(prefix)\"]") == [
          "encrypted.\(key)[#2]: \(prefix) has this machine's loopback in it, so that every local program could name any "
            + "client; name the addresses of the proxies"
        ])
    }
    for prefix in ["127.0.0.0/8", "127.0.0.1/32", "::1/128"] {
      #expect(
        messages("[encrypted]\n\(plain)\(key) = [\"\(prefix)\"]") == [
          "test.toml: encrypted.\(key)[#1]: \(prefix): every local program can name any client"
        ])
    }
    #expect(messages("[encrypted]\n\(plain)\(key) = [\"128.0.0.0/1\", \"2000::/3\"]") == [])
  }

  @Test func `serving everybody without tokens causes a warning`() {
    let remark = "is an open resolver"
    for prefix in ["0.0.0.0/0", "::/0"] {
      let allow = "allow = [\"\(prefix)\"]\n"
      #expect(
        remarks(plain + allow).map { $0.hasPrefix("encrypted.allow: \(prefix) ") && $0.hasSuffix(remark) } == [true])
      #expect(remarks(plain + allow + "name = \"dns.example\"\ntokens_file = \"/tls/tokens\"") == [])
      let open = "[listen]\nallow = [\"\(prefix)\"]\n[encrypted]\n\(plain)"
      #expect(warnings(open).filter { $0.hasSuffix(remark) }.count == 1)
      #expect(warnings(open + "allow = [\"connected\"]").filter { $0.hasSuffix(remark) }.isEmpty)
    }
  }

  @Test func `what has no effect causes a warning`() {
    #expect(remarks("name = \"dns.example\"") == ["encrypted: has no effect without dot, doh or doh_plain"])
    #expect(
      remarks(plain + pair + "published = [\"192.0.2.1\"]") == [
        "encrypted.certificate_file: has no effect without dot or doh",
        "encrypted.key_file: has no effect without dot or doh", "encrypted.published: has no effect without name",
      ])
    #expect(
      remarks("dot = [\"192.0.2.1:853\"]\njson = true\nforwarded_from = [\"192.0.2.2\"]\n\(pair)") == [
        "encrypted.json: has no effect without doh or doh_plain",
        "encrypted.forwarded_from: has no effect without doh_plain",
      ])
  }

  @Test func `the clients of port 53 stand for the word listen`() throws {
    var both = try configuration("listen.allow = [\"192.0.2.0/24\"]\nencrypted.allow = [\"10.0.0.0/8\", \"listen\"]")
    let ten = Configuration.ClientNetwork.prefix(try #require(IPPrefix(text: "10.0.0.0/8")))
    #expect(both.encryptedClients == [ten] + both.listen.allow)
    both.listen.allow = [.connected]
    #expect(both.encryptedClients == [ten, .connected])
  }
}
