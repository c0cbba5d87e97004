// EncryptedDoctorTests.swift -- what `doctor` finds at the encrypted listeners, where phones say only that they cannot connect.

import TLSTestSupport
import Testing

@Suite(.blocking) struct EncryptedDoctorTests {
  /// The configuration of a running daemon, with the ports that it has.
  private func text(_ keys: String, of scene: EncryptedScene, in lab: Lab) -> String {
    [("dot", scene.dot), ("doh", scene.doh), ("doh_plain", scene.plain)].reduce(scene.text(keys, in: lab)) {
      $0.replacing("\n\($1.0) = [\"127.0.0.1:0\"]", with: "\n\($1.0) = [\"\($1.1)\"]")
    }
  }

  /// The lines about the encrypted listeners.
  private func findings(_ text: String, trusting authority: String, in lab: Lab) throws -> [Substring] {
    let output = try lab.run(
      "doctor", "--config", lab.file(text),
      environment: ["SSL_CERT_FILE": authority, "SSL_CERT_DIR": "/nonexistent"]
    ).output
    return output.split(separator: "\n").filter { $0.contains(#/^(?:DoT|DoH|encrypted) /#) }
  }

  @Test func `each listener without TLS is asked as a proxy would`() throws {
    try withLab { lab in
      func lines(_ text: String) throws -> [Substring] {
        try findings(text, trusting: "\(lab.folder.path)/authority.pem", in: lab)
          .filter { $0.hasPrefix("DoH without TLS 127.0.0.1:") }
      }
      let tokens = try lab.folder.write("phone 6f1ed002ab559585\n", to: "tokens")
      for keys in ["", "name = \"dns.test\"", "name = \"dns.test\"\ntokens_file = \"\(tokens)\""] {
        let scene = try EncryptedScene(in: lab, keys)
        let good = try lines(text(keys, of: scene, in: lab))
        let name = keys.isEmpty ? "127.0.0.1" : "dns.test"
        #expect(good.map { $0.hasSuffix("  answers a proxy as \(name)") } == [true], "\(good)")
        #expect(!good.contains { $0.contains("6f1ed002ab559585") })
      }
      // Where the requests of a proxy name the clients, its own do not count.
      let keys = "name = \"dns.test\"\nforwarded_from = [\"127.0.0.1\"]\nallow = [\"192.0.2.0/24\"]"
      let proxied = try EncryptedScene(in: lab, keys)
      let own = try lines(text(keys, of: proxied, in: lab))
      #expect(
        own.map { $0.contains(#/ note +not tried: this machine is not in encrypted.allow/#) } == [true], "\(own)")
      let closed = try EncryptedScene(in: lab, "name = \"dns.test\"\nallow = [\"192.0.2.0/24\"]")
      let refused = try lines(text("name = \"dns.test\"", of: closed, in: lab))
      #expect(
        refused.map { $0.contains(#/ problem +it closes the connection without an answer: is this machine in /#) }
          == [true], "\(refused)")
      let open = try EncryptedScene(in: lab)
      let named = try lines(text("name = \"other.test\"", of: open, in: lab))
      #expect(named.map { $0.contains(#/ problem +a query gets "HTTP\/1.1 421 /#) } == [true], "\(named)")
    }
  }

  @Test func `each listener with TLS is asked as a strict client would`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let text = text("name = \"dns.test\"", of: scene, in: lab)
      let other = try lab.folder.write(Certificates.otherAuthority, to: "other.pem")
      func findings(_ text: String, trusting authority: String) throws -> [Substring] {
        try self.findings(text, trusting: authority, in: lab)
      }

      let good = try findings(text, trusting: "\(lab.folder.path)/authority.pem")
      #expect(
        good.count { $0.contains(#/^Do[TH] 127.0.0.1:\d+ +ok +answers a strict client as dns.test/#) } == 2, "\(good)")
      let strange = try findings(text, trusting: other)
      #expect(
        strange.count { $0.contains(#/^Do[TH] \S+ +problem +clients do not trust the certificate: /#) } == 2,
        "\(strange)")
      let named = try findings(
        text.replacing("name = \"dns.test\"", with: "name = \"other.test\""),
        trusting: "\(lab.folder.path)/authority.pem")
      #expect(named.contains { $0.contains("the certificate is not for other.test") }, "\(named)")
    }
  }
}
