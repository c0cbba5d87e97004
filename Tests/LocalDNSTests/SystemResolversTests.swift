// SystemResolversTests.swift -- servers from the machine's files, and never ourselves.

import DNSWire
import EventLoop
import Glibc
import LocalDNS
import TestSupport
import Testing

@Suite struct `A resolver file` {
  @Test func `servers and the last search line are read, comments and invalid lines are not`() {
    let file = ResolverFile(
      text: """
        # nameserver 192.0.2.99
        ; nameserver 192.0.2.98
        nameserver 192.0.2.1
        nameserver\t2001:db8::1   # trailing
        nameserver 192.0.2.1
        nameserver
        nameserver resolver.example
        nameserver 192.0.2.300
        domain old.example
        search  lan . corp.example. bad..name # comment
        options edns0 trust-ad
        """)
    #expect(file.servers.map(\.description) == ["192.0.2.1:53", "[2001:db8::1]:53"])
    #expect(file.searchDomains.map(\.text) == ["lan.", "corp.example."])
  }

  @Test func `options of the C library change nothing`() {
    let plain = "nameserver 192.0.2.1\nsearch corp.example\n"
    for options in ["ndots:15", "timeout:30 attempts:5", "rotate", "single-request", "edns0 trust-ad no-aaaa"] {
      #expect(ResolverFile(text: "\(plain)options \(options)\nsortlist 192.0.2.0\n") == ResolverFile(text: plain))
    }
  }

  @Test func `with the option use-vc the servers are asked over TCP`() {
    for text in [
      "options use-vc\nnameserver 192.0.2.1\n", "nameserver 192.0.2.1\noptions ndots:2\noptions rotate use-vc\n",
    ] {
      #expect(ResolverFile(text: text).servers.map(\.description) == ["tcp://192.0.2.1:53"])
    }
  }

  @Test func `a server may have a zone, by number or by name`() {
    let file = ResolverFile(
      text:
        "nameserver fe80::1%7\nnameserver fe80::2%lo\nnameserver fe80::3%no-such-interface\nnameserver 192.0.2.1%lo\n")
    #expect(file.servers.map(\.description) == ["[fe80::1%7]:53", "[fe80::2%lo]:53"])
    #expect(file.servers.map(\.target?.scope) == [7, if_nametoindex("lo")])
  }

  @Test func `addresses that the kernel maps to another one are that one`() {
    let file = ResolverFile(text: "nameserver 0.0.0.0\nnameserver ::\nnameserver ::ffff:192.0.2.1\n")
    #expect(file.servers.map(\.description) == ["127.0.0.1:53", "[::1]:53", "192.0.2.1:53"])
  }

  @Test func `lists are bounded`() {
    let servers = (0..<50).map { "nameserver 192.0.2.\($0)\n" }.joined()
    let search = "search " + (0..<100).map { "d\($0).example" }.joined(separator: " ")
    let file = ResolverFile(text: servers + search)
    #expect(file.servers.count == ResolverFile.maximumServers)
    #expect(file.searchDomains.count == ResolverFile.maximumSearchDomains)
  }

  @Test func `a file that is not there, is a directory or does not end is no file`() {
    #expect(ResolverFile(path: "/nonexistent/resolv.conf") == nil)
    #expect(ResolverFile(path: "/proc") == nil)
    #expect(ResolverFile(path: "/dev/zero") == nil)
    #expect(ResolverFile(path: "/dev/null") == ResolverFile(text: ""))
  }
}

@Suite struct `The system's resolvers` {
  /// Files with these texts, for as long as `body` runs.
  private func withFiles<Value>(_ texts: [String], _ body: ([String]) -> Value) -> Value {
    let folder = TemporaryFolder()
    let paths = texts.enumerated().map { folder.write($1, to: "\($0)") }
    defer { withExtendedLifetime(folder) {} }
    return body(paths + ["/nonexistent/resolv.conf"])
  }

  private func find(_ texts: [String], at listeners: [String], local: [String] = []) -> SystemResolvers {
    withFiles(texts) { paths in
      SystemResolvers(
        paths: paths, notAt: listeners.map { SocketAddress(text: $0)! },
        localAddresses: Set(local.map { SocketAddress(text: $0)! }))
    }
  }

  private func servers(_ text: String, at listeners: [String], local: [String] = []) -> [String] {
    find([text], at: listeners, local: local).servers.map(\.description)
  }

  @Test func `the first file with a usable server gives the servers, all files give search domains`() {
    let found = find(
      [
        "nameserver 127.0.0.1\nsearch a.example\n", "nameserver 192.0.2.1\nsearch b.example A.example\n",
        "nameserver 192.0.2.2\nsearch c.example\n",
      ], at: ["127.0.0.1:53"])
    #expect(found.servers.map(\.description) == ["192.0.2.1:53"])
    #expect(found.searchDomains.map(\.text) == ["a.example.", "b.example.", "c.example."])
    #expect(found.omitted.map { "\($0.server) \($0.reason)" } == ["127.0.0.1:53 httpdnsd itself"])
  }

  @Test func `our own listen address is left out, at its own port only`() {
    let text = "nameserver 127.0.0.1\nnameserver ::1\nnameserver 192.0.2.1\n"
    #expect(servers(text, at: ["127.0.0.1:53", "[::1]:53"]) == ["192.0.2.1:53"])
    #expect(servers(text, at: ["127.0.0.1:5353"]) == ["127.0.0.1:53", "[::1]:53", "192.0.2.1:53"])
    #expect(servers("nameserver ::ffff:127.0.0.1\nnameserver 0.0.0.0\n", at: ["127.0.0.1:53"]) == [])
  }

  @Test func `a wildcard listener is at the addresses of the interfaces and the usual one of loopback`() {
    let text =
      "nameserver 127.0.0.1\nnameserver 192.0.2.7\nnameserver ::1\nnameserver 2001:db8::7\nnameserver 192.0.2.1\n"
    let local = ["192.0.2.7:0", "[2001:db8::7]:0"]
    #expect(servers(text, at: ["0.0.0.0:53"], local: local) == ["[::1]:53", "[2001:db8::7]:53", "192.0.2.1:53"])
    #expect(servers(text, at: ["0.0.0.0:53", "[::]:53"], local: local) == ["192.0.2.1:53"])
    #expect(servers(text, at: ["[::]:54"], local: local).count == 5)
  }

  @Test func `another loopback address, such as that of Docker's resolver, is not ours for certain`() {
    func ownership(_ server: String, _ listeners: String...) -> SystemResolvers.Ownership {
      SystemResolvers.ownership(
        of: PlainResolver(SocketAddress(text: server)!), listeners.map { SocketAddress(text: $0)! }, [])
    }
    #expect(servers("nameserver 127.0.0.11\n", at: ["0.0.0.0:53", "[::]:53"]) == ["127.0.0.11:53"])
    #expect(ownership("127.0.0.11:53", "0.0.0.0:53") == .doubtful)
    #expect(ownership("127.0.0.11:53", "127.0.0.1:53") == .others)
    #expect(ownership("127.0.0.11:53", "127.0.0.11:53", "0.0.0.0:53") == .ours)
    #expect(ownership("127.0.0.11:54", "0.0.0.0:53") == .others)
    #expect(ownership("127.0.0.1:53", "[::]:53") == .doubtful)
    #expect(ownership("192.0.2.1:53", "0.0.0.0:53", "[::]:53") == .others)
  }

  @Test func `a link-local address is ours on its own interface only`() {
    let lo = if_nametoindex("lo")
    let local = SocketAddress(text: "[fe80::1%lo]:0")!
    for (zone, ownership) in [("lo", SystemResolvers.Ownership.ours), ("\(lo)", .ours), ("\(lo + 1)", .others)] {
      let server = PlainResolver(SocketAddress(text: "[fe80::1]:53")!, zone: zone)
      #expect(SystemResolvers.ownership(of: server, [SocketAddress(text: "[::]:53")!], [local]) == ownership)
      #expect(SystemResolvers.ownership(of: server, [SocketAddress(text: "[fe80::1%lo]:53")!], []) == ownership)
    }
  }

  @Test func `resolved's stub is never asked, but the servers behind it are`() {
    let found = find(["nameserver 127.0.0.53\n", "nameserver 192.0.2.1\n"], at: [])
    #expect(found.servers.map(\.description) == ["192.0.2.1:53"])
    #expect(found.omitted.map(\.reason) == ["systemd-resolved, whose file is read instead"])
    #expect(servers("nameserver 127.0.0.53\nnameserver 127.0.0.54\n", at: []) == [])
  }

  @Test func `this machine has a loopback address`() {
    let addresses = LocalAddresses.all()
    #expect(addresses.contains(SocketAddress(text: "127.0.0.1:0")!))
  }

  @Test func `the machine's own resolver files are readable if they exist`() {
    let files = SystemResolvers.usualPaths.compactMap { ResolverFile(path: $0) }
    let named = Set(files.flatMap(\.servers))
    let found = SystemResolvers(notAt: [])
    #expect(Set(found.servers).isSubset(of: named))
    #expect(Set(found.searchDomains) == Set(files.flatMap(\.searchDomains)))
    // At whichever address it would ask itself, it asks no server.
    #expect(SystemResolvers(notAt: named.compactMap(\.target)).servers.isEmpty)
  }
}
