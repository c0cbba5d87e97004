// ProfileTests.swift -- `httpdnsd profile`: what to enter in devices, profiles of Apple's form, and what a router announces.

import Foundation
import Testing

private let token = "6f1ed002ab559585"

/// A configuration whose pair does not exist: `profile` needs none.
private func text(_ keys: String, listeners: String = "doh_plain = [\"127.0.0.1:8053\"]") -> String {
  "[encrypted]\n\(listeners)\n\(keys)\n"
}

private let tls = """
  dot = ["0.0.0.0:853"]
  doh = ["0.0.0.0:443"]
  certificate_file = "/no/chain.pem"
  key_file = "/no/key.pem"
  """

@Suite(.blocking) struct ProfileTests {
  private func profile(
    _ configuration: String, _ arguments: String..., tokens: String? = nil
  ) throws -> (status: ChildProcess.Ending, output: String, error: String) {
    var result: (ChildProcess.Ending, String, String)?
    try withLab { lab in
      var configuration = configuration
      if let tokens {
        let path = try lab.folder.write(tokens, to: "tokens")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        configuration += "tokens_file = \"\(path)\"\n"
      }
      result = try lab.run(["profile", "--config", lab.file(configuration)] + arguments)
    }
    return try #require(result)
  }

  /// The keys of a profile: those of the outer payload, of the inner one and of the settings.
  private func parsed(_ output: String) throws -> (outer: [String: Any], inner: [String: Any], settings: [String: Any])
  {
    let value = try PropertyListSerialization.propertyList(from: Data(output.utf8), format: nil)
    let outer = try #require(value as? [String: Any])
    let inner = try #require((outer["PayloadContent"] as? [[String: Any]])?.first)
    return (outer, inner, try #require(inner["DNSSettings"] as? [String: Any]))
  }

  @Test func `without a kind it prints what to enter in each device`() throws {
    let (status, output, error) = try profile(
      text("name = \"dns.example.com\"\npublished = [\"192.0.2.53\", \"2001:db8::53\"]", listeners: tls))
    #expect(status == .exited(0) && error.isEmpty)
    #expect(
      output == """
        Firefox, Chrome, Windows: DNS over HTTPS
          https://dns.example.com/dns-query

        Android: Private DNS
          dns.example.com

        iPhone, iPad, Mac: install this file
          httpdnsd profile --doh > dns.mobileconfig

        Router: DNR (RFC 9463)
          priority 1
          name dns.example.com
          addresses 192.0.2.53 2001:db8::53
          parameters alpn=h2 port=443 dohpath=/dns-query{?dns}
          DHCPv6 option 144: 0001001103646e73076578616d706c6503636f6d00001020010db8000000000000000000000053000100030268320003000201bb000700102f646e732d71756572797b3f646e737d

        Router: DNR (RFC 9463)
          priority 2
          name dns.example.com
          addresses 192.0.2.53 2001:db8::53
          parameters alpn=dot port=853
          DHCPv6 option 144: 0002001103646e73076578616d706c6503636f6d00001020010db80000000000000000000000530001000403646f74000300020355

        Router: all of it for DHCPv4
          option 162: 003a00011103646e73076578616d706c6503636f6d0004c0000235000100030268320003000201bb000700102f646e732d71756572797b3f646e737d002700021103646e73076578616d706c6503636f6d0004c00002350001000403646f74000300020355

        """)
  }

  @Test func `a profile for DNS over HTTPS has the URL, with its port if that is another one`() throws {
    for (port, url) in [("443", "https://dns.example.com/q"), ("8443", "https://dns.example.com:8443/q")] {
      let (status, output, error) = try profile(
        text(
          "name = \"DNS.example.com\"\npath = \"/q\"", listeners: tls.replacingOccurrences(of: ":443", with: ":\(port)")
        ),
        "--doh")
      #expect(status == .exited(0) && error.isEmpty)
      let (outer, inner, settings) = try parsed(output)
      #expect(settings as? [String: String] == ["DNSProtocol": "HTTPS", "ServerURL": url])
      #expect(inner["PayloadType"] as? String == "com.apple.dnsSettings.managed")
      #expect(outer["PayloadType"] as? String == "Configuration")
      for payload in [outer, inner] {
        #expect(payload["PayloadVersion"] as? Int == 1)
        #expect(payload["PayloadDisplayName"] as? String == "dns.example.com")
        let uuid = try #require(payload["PayloadUUID"] as? String)
        #expect(UUID(uuidString: uuid) != nil)
        #expect(payload["PayloadIdentifier"] as? String == "httpdnsd.\(uuid)")
      }
      #expect(outer["PayloadUUID"] as? String != inner["PayloadUUID"] as? String)
    }
  }

  @Test func `a profile for DNS over TLS has the name, and a remark if devices connect to another port`() throws {
    let keys = "name = \"dns.example.com\"\npublished = [\"192.0.2.53\"]"
    let (_, output, error) = try profile(text(keys, listeners: tls), "--dot")
    let settings = try parsed(output).settings
    #expect(error.isEmpty)
    #expect(settings["DNSProtocol"] as? String == "TLS" && settings["ServerName"] as? String == "dns.example.com")
    #expect(settings["ServerAddresses"] as? [String] == ["192.0.2.53"] && settings.count == 3)
    let other = try profile(text(keys, listeners: tls.replacingOccurrences(of: ":853", with: ":8853")), "--dot")
    #expect(other.error.contains("port 853") && other.error.contains("8853"))
    #expect(other.output == output)
  }

  @Test func `the identifiers follow from name, protocol and label`() throws {
    func identifiers(_ keys: String, _ arguments: [String]) throws -> [String] {
      var output = ""
      try withLab { lab in
        let tokens = try lab.folder.write("phone \(token)\nlaptop \(token)1\n", to: "tokens")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokens)
        let file = try lab.file(text(keys + "\ntokens_file = \"\(tokens)\"", listeners: tls))
        output = try lab.run(["profile", "--config", file] + arguments).output
      }
      let (outer, inner, _) = try parsed(output)
      return [outer, inner].compactMap { $0["PayloadUUID"] as? String }
    }
    let one = try identifiers("name = \"a.example\"", ["--doh", "--token", "phone"])
    #expect(one.count == 2)
    #expect(
      try identifiers(
        "name = \"a.example\"\npublished = [\"192.0.2.1\"]\npath = \"/q\"", ["--doh", "--token", "phone"]) == one)
    for (name, arguments) in [
      ("b.example", ["--doh", "--token", "phone"]), ("a.example", ["--dot", "--token", "phone"]),
      ("a.example", ["--doh", "--token", "laptop"]), ("a.example", ["--doh"]),
    ] {
      #expect(Set(try identifiers("name = \"\(name)\"", arguments)).isDisjoint(with: one))
    }
  }

  @Test func `a token is part of the URL and of the name`() throws {
    let configuration = text("name = \"dns.example.com\"", listeners: tls)
    let tokens = "phone \(token)\n"
    let (_, output, error) = try profile(configuration, "--token", "phone", tokens: tokens)
    #expect(error.isEmpty)
    for line in [
      "  https://dns.example.com/dns-query/\(token)\n", "  \(token).dns.example.com\n", "--doh --token phone > ",
      "dohpath=/dns-query/\(token){?dns}\n", "  name \(token).dns.example.com\n",
    ] { #expect(output.contains(line), "\(output)") }
    let doh = try parsed(profile(configuration, "--doh", "--token", "phone", tokens: tokens).output)
    #expect(doh.settings["ServerURL"] as? String == "https://dns.example.com/dns-query/\(token)")
    #expect(doh.outer["PayloadDisplayName"] as? String == "dns.example.com (phone)")
    let dot = try parsed(profile(configuration, "--dot", "--token", "phone", tokens: tokens).output)
    #expect(dot.settings["ServerName"] as? String == "\(token).dns.example.com")
    let without = try profile(configuration, "--doh", tokens: tokens)
    #expect(without.status == .exited(0) && without.error.contains("give --token LABEL"))
    let stranger = try profile(configuration, "--token", "tablet", tokens: tokens)
    #expect(stranger.status == .exited(1) && stranger.output.isEmpty)
    #expect(stranger.error == "httpdnsd: no token has the label 'tablet'; known: phone\n")
    #expect(
      try profile(configuration, "--token", "phone", tokens: token).error.contains("line 1: is not \"LABEL TOKEN\""))
  }

  @Test func `behind a TLS proxy the URL has no port, and a remark says so`() throws {
    let (status, output, error) = try profile(text("name = \"dns.example.com\""), "--doh")
    #expect(status == .exited(0) && error.contains("doh_plain"))
    #expect(try parsed(output).settings["ServerURL"] as? String == "https://dns.example.com/dns-query")
  }

  @Test func `what is missing is named`() throws {
    for (configuration, arguments, problem) in [
      ("", [], "encrypted: no listener"), (text(""), [], "encrypted.name: devices need a name"),
      (text("name = \"a.example\""), ["--dot"], "encrypted.dot: empty"),
      (
        text("name = \"a.example\"", listeners: tls.replacingOccurrences(of: "doh = [\"0.0.0.0:443\"]", with: "")),
        ["--doh"], "encrypted.doh: empty"
      ),
      (text("name = \"a.example\""), ["--token", "phone"], "encrypted.tokens_file: empty"),
    ] {
      try withLab { lab in
        let (status, output, error) = try lab.run(["profile", "--config", lab.file(configuration)] + arguments)
        #expect(status == .exited(1) && output.isEmpty && error.contains(problem), "\(error)")
      }
    }
    #expect(try profile(text("name = \"a.example\""), "--doh", "--dot").status == .exited(64))
  }
}
