// ResolverAddressTests.swift -- addresses of plain resolvers and listeners: ports, TCP, interfaces.

import Configuration
import Testing

/// Everywhere a plain resolver may stand.
private let places: [(String, @Sendable (Configuration) -> String?)] = [
  (
    "localdns.servers = [$]",
    { configuration in
      guard case .resolver(let resolver)? = configuration.localDNS.servers.first else { return nil }
      return resolver.description
    }
  ),
  (
    "[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\"\nservers = [$]",
    { configuration in
      guard case .resolver(let resolver)? = configuration.rules.first?.servers.first else { return nil }
      return resolver.description
    }
  ),
  (
    "[[provider]]\nkind = \"doh\"\nurl = \"https://dns.example/q\"\nbootstrap = [$]",
    { $0.providers.first?.bootstrap.first?.description }
  ),
  (
    "cache.redis = \"rediss://store.example\"\nfleet.bootstrap = [$]", { $0.fleet.bootstrap.first?.description }
  ),
]

@Suite struct `The address of a plain resolver` {
  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1:53"), ("192.0.2.1:5353", "192.0.2.1:5353"), ("2001:db8::1", "[2001:db8::1]:53"),
    ("tcp://192.0.2.1", "tcp://192.0.2.1:53"), ("tcp://[2001:db8::1]:5353", "tcp://[2001:db8::1]:5353"),
    ("fe80::1%eth0", "[fe80::1%eth0]:53"), ("[fe80::1%eth0]", "[fe80::1%eth0]:53"),
    ("[febf::1%wlp0s20f3.100]:5353", "[febf::1%wlp0s20f3.100]:5353"), ("tcp://fe80::1%2", "tcp://[fe80::1%2]:53"),
    // A wildcard listener is at 127.0.0.1, but 127.0.0.11 may be Docker's resolver.
    ("127.0.0.11", "127.0.0.11:53"),
  ])
  func `is accepted in every place with its port, its interface and TCP`(text: String, expected: String) throws {
    for (place, address) in places {
      let toml = "listen.addresses = [\"0.0.0.0:53\", \"[::]:53\"]\n" + place.replacing("$", with: "\"\(text)\"")
      #expect(address(try configuration(toml)) == expected, "\(place)")
    }
  }

  @Test(arguments: [
    "fe80::1", "[fe80::1]:53", "tcp://fe80::1", "fe80::1%", "fe80::1%eth0:53", "fe80::1%a/b",
    "fe80::1%16-octets-are-too",
    "fe80::1%eth0%1", "2001:db8::1%eth0", "192.0.2.1%eth0", "udp://192.0.2.1", "TCP://192.0.2.1", "tcp://",
    "tcp://system", "tcp://dns.example", "127.0.0.1", "::1",
  ])
  func `is refused in every place if it cannot work`(text: String) {
    for (place, _) in places {
      let toml = "listen.addresses = [\"0.0.0.0:53\", \"[::]:53\"]\n" + place.replacing("$", with: "\"\(text)\"")
      #expect(mistakes(toml).count == 1, "\(place)")
    }
  }

  @Test func `is not the daemon's own, on the interface of a listener`() {
    let listen = "listen.addresses = [\"[fe80::1%eth0]:53\"]\n"
    #expect(mistakes(listen + "localdns.servers = [\"fe80::1%eth0\"]").count == 1)
    #expect(mistakes(listen + "localdns.servers = [\"fe80::1%eth1\", \"[fe80::1%eth0]:54\"]").isEmpty)
  }
}

@Suite struct `A listening address` {
  @Test func `may be link-local with its interface`() throws {
    let read = try configuration("listen.addresses = [\"[fe80::1%eth0]:53\"]\nweb.address = \"[fe80::2%1]:9353\"")
    #expect(read.listen.addresses.map(\.description) == ["[fe80::1%eth0]:53"])
    #expect(read.web.address?.description == "[fe80::2%1]:9353")
  }

  @Test(arguments: ["[fe80::1]:53", "[2001:db8::1%eth0]:53", "[fe80::1%eth 0]:53", "fe80::1%eth0"])
  func `is refused without the interface, or with one that makes no sense`(text: String) {
    #expect(mistakes("listen.addresses = [\"\(text)\"]").count == 1)
  }
}
