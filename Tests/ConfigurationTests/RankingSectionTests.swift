// RankingSectionTests.swift -- the `[ranking]` section: kinds of probe, patterns of names, limits.

import Configuration
import DNSWire
import Testing

@Suite struct RankingSectionTests {
  @Test(arguments: [
    "probe = \"udp:53\"", "probe = \"tcp:0\"", "probe = \"tcp:65536\"", "probe = \"tcp\"", "probe = \"\"",
    "probe = \"icmp,icmp\"", "probe = \"tcp:1,tcp:2,tcp:3,icmp\"", "probe = \"off,icmp\"", "interval = \"0s\"",
    "domains = { \"a..b\" = \"icmp\" }", "domains = { \"a.example\" = \"ping\" }", "domains = { \"*\" = \"icmp\" }",
    "domains = \"icmp\"", "probes_per_minute = 0", "probes_per_minute = 6001", "answers = -1", "bad_for = \"2d\"",
    "reports = \"yes\"", "domains = { \"Example.com\" = \"tcp:443\", \"example.com\" = \"icmp\" }",
  ])
  func `what is not allowed is one mistake, which names the key`(line: String) {
    let found = mistakes("[ranking]\n\(line)")
    #expect(found.count == 1)
    #expect(found.first?.contains("ranking.\(line.prefix { $0 != " " })") == true, "\(found)")
  }

  @Test(arguments: [
    "probe = \"off\"", "probe = \"icmp\"", "probe = \"tcp:443,tcp:80,icmp\"", "probe = \"tcp:443 , icmp\"",
    "domains = { \"example.com\" = \"tcp:8443\", \"=cdn.example.net\" = \"icmp\", \"*.lan\" = \"off\" }",
    "probes_per_minute = 6000\nanswers = 3\nreports = false\nbad_for = \"1h\"\ninterval = \"1s\"",
  ])
  func `what is allowed is read`(lines: String) { #expect(mistakes("[ranking]\n\(lines)") == []) }

  @Test(arguments: [
    "https://dns.example.com", "dns.example.com:443", "dns.example.com/dashboard", ".", "127.0.0.1", "localhost",
    "*.example.com",
  ])
  func `a host of a proxy is a name alone`(host: String) {
    #expect(mistakes("[web]\naddress = \"127.0.0.1:9353\"\nhosts = [\"\(host)\"]").count == 1)
  }

  @Test(arguments: ["short", "has a space in the middle", "ümlaut-ümlaut-ümlaut"])
  func `a token that is too short or has invalid characters is refused`(token: String) {
    #expect(mistakes("[web]\naddress = \"127.0.0.1:9353\"\nreport_token = \"\(token)\"").count == 1)
  }
}
