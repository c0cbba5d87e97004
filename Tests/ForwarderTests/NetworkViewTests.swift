// NetworkViewTests.swift -- what `check` says about resolvers that LocalDNS does not use, or may not.

import Configuration
import Testing

@testable import Forwarder

@Suite struct NetworkViewTests {
  private func lines(listen: String, servers: String) throws -> [String] {
    let provider = "[[provider]]\nkind = \"json\"\nurl = \"https://dns.google/resolve\"\n"
    let text = "\(provider)[listen]\naddresses = [\(listen)]\n[localdns]\nservers = [\(servers)]\n"
    return NetworkView(try Configuration.parse(text: text, fileName: "a.toml").configuration).lines
      .filter { $0.hasPrefix("LocalDNS") }
  }

  @Test func `Docker's resolver beside a wildcard listener is used, and a line says that a probe decides`() throws {
    #expect(
      try lines(listen: "\"0.0.0.0:53\"", servers: "\"127.0.0.11:53\"") == [
        "LocalDNS: 127.0.0.11:53", "LocalDNS uses 127.0.0.11:53 unless a probe shows that it is httpdnsd itself",
      ])
    #expect(try lines(listen: "\"127.0.0.1:53\"", servers: "\"127.0.0.11:53\"") == ["LocalDNS: 127.0.0.11:53"])
  }
}
