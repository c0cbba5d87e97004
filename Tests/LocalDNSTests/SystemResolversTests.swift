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
    for options in [
      "ndots:15", "timeout:30 attempts:5", "rotate", "use-vc", "single-request", "edns0 trust-ad no-aaaa",
    ] {
      #expect(ResolverFile(text: "\(plain)options \(options)\nsortlist 192.0.2.0\n") == ResolverFile(text: plain))
    }
  }

  @Test func `a server may have a zone, by number or by name`() {
    let file = ResolverFile(text: "nameserver fe80::1%7\nnameserver fe80::2%lo\nnameserver fe80::3%no-such-interface\n")
    let scopes = file.servers.map { server in
      withUnsafeBytes(of: server.storage) { $0.load(fromByteOffset: 24, as: UInt32.self) }
    }
    #expect(file.servers.map(\.description) == ["[fe80::1]:53", "[fe80::2]:53"])
    #expect(scopes == [7, if_nametoindex("lo")])
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

  private func find(_ texts: [String], at listeners: [String], local: [[UInt8]] = []) -> [String] {
    withFiles(texts) { paths in
      SystemResolvers.find(
        paths: paths, notAt: listeners.map { SocketAddress(text: $0)! }, localAddresses: Set(local)
      ).servers.map(\.description)
    }
  }

  @Test func `the first file with a usable server gives the servers, all files give search domains`() {
    let found = withFiles([
      "nameserver 127.0.0.1\nsearch a.example\n", "nameserver 192.0.2.1\nsearch b.example A.example\n",
      "nameserver 192.0.2.2\nsearch c.example\n",
    ]) { SystemResolvers.find(paths: $0, notAt: [SocketAddress(text: "127.0.0.1:53")!], localAddresses: []) }
    #expect(found.servers.map(\.description) == ["192.0.2.1:53"])
    #expect(found.searchDomains.map(\.text) == ["a.example.", "b.example.", "c.example."])
  }

  @Test func `our own listen address is left out, at its own port only`() {
    let text = "nameserver 127.0.0.1\nnameserver ::1\nnameserver 192.0.2.1\n"
    #expect(find([text], at: ["127.0.0.1:53", "[::1]:53"]) == ["192.0.2.1:53"])
    #expect(find([text], at: ["127.0.0.1:5353"]) == ["127.0.0.1:53", "[::1]:53", "192.0.2.1:53"])
    #expect(find(["nameserver ::ffff:127.0.0.1\nnameserver 0.0.0.0\n"], at: ["127.0.0.1:53"]) == [])
  }

  @Test func `a wildcard listener is at every address of the machine`() {
    let text =
      "nameserver 127.0.0.9\nnameserver 192.0.2.7\nnameserver ::1\nnameserver 2001:db8::7\nnameserver 192.0.2.1\n"
    let local: [[UInt8]] = [[192, 0, 2, 7], IPAddress(text: "2001:db8::7")!.octets]
    #expect(find([text], at: ["0.0.0.0:53"], local: local) == ["[::1]:53", "[2001:db8::7]:53", "192.0.2.1:53"])
    #expect(find([text], at: ["[::]:53"], local: local) == ["192.0.2.1:53"])
    #expect(find([text], at: ["[::]:54"], local: local).count == 5)
  }

  @Test func `resolved's stub is never asked, but the servers behind it are`() {
    #expect(find(["nameserver 127.0.0.53\n", "nameserver 192.0.2.1\n"], at: []) == ["192.0.2.1:53"])
    #expect(find(["nameserver 127.0.0.53\nnameserver 127.0.0.54\n"], at: []) == [])
  }

  @Test func `this machine has a loopback address`() {
    let addresses = LocalAddresses.all()
    #expect(addresses.contains([127, 0, 0, 1]))
    #expect(addresses.allSatisfy { $0.count == 4 || $0.count == 16 })
    #expect(SystemResolvers.isOurs(SocketAddress(text: "127.0.0.1:53")!, [SocketAddress(text: "0.0.0.0:53")!]))
  }

  @Test func `the machine's own resolver files are readable if they exist`() {
    let files = SystemResolvers.usualPaths.compactMap { ResolverFile(path: $0) }
    let named = Set(files.flatMap(\.servers))
    let found = SystemResolvers.find(notAt: [])
    #expect(Set(found.servers).isSubset(of: named))
    #expect(Set(found.searchDomains) == Set(files.flatMap(\.searchDomains)))
    // At whichever address it would ask itself, it asks no server.
    #expect(SystemResolvers.find(notAt: Array(named)).servers.isEmpty)
  }
}
