// EncryptedReloadTests.swift -- certificates and settings of the encrypted listeners that change while the daemon runs.

import DNSWire
import Foundation
import TLSTestSupport
import TestSupport
import Testing

@Suite(.blocking) struct EncryptedReloadTests {
  /// A daemon with a certificate whose subject is `one`, and another pair with `two`.
  private struct Renewal {
    let scene: EncryptedScene
    let certificate: String
    let key: String
    /// Where certificates are made.
    let folder = TestSupport.TemporaryFolder()
    let maker: TestCertificates
    private let place: String

    init(in lab: Lab, _ keys: String = "", until end: Int = 2120) throws {
      maker = try TestCertificates(in: folder)
      try maker.make("one", for: "DNS:dns.test", until: end)
      try maker.make("two", for: "DNS:dns.test")
      place = lab.folder.path
      (certificate, key) = ("\(place)/chain.pem", "\(place)/chain.key")
      try Renewal.replace(key, folder.path(of: "one.key"))
      try Renewal.replace(certificate, folder.path(of: "one.pem"))
      scene = try EncryptedScene(
        in: lab,
        "name = \"dns.test\"\ncertificate_file = \"\(certificate)\"\nkey_file = \"\(key)\"\n\(keys)")
    }

    /// Puts a made pair, or one file of it, in the place of the daemon's.
    func install(_ name: String, certificate hasCertificate: Bool = true, key hasKey: Bool = true) throws {
      if hasKey { try Renewal.replace(key, folder.path(of: "\(name).key")) }
      if hasCertificate { try Renewal.replace(certificate, folder.path(of: "\(name).pem")) }
    }

    /// As ACME clients do: another file takes the name.
    private static func replace(_ path: String, _ other: String) throws {
      let new = "\(path).new"
      try? FileManager.default.removeItem(atPath: new)
      try FileManager.default.copyItem(atPath: other, toPath: new)
      guard chmod(new, 0o600) == 0, rename(new, path) == 0 else { throw Failure("cannot replace \(path)") }
    }

    /// The subject of the certificate that new clients meet.
    func subject() throws -> String { try scene.overTLS().tls!.subject }

    func wait(for subject: String) throws {
      try eventually("the certificate \(subject)", within: .seconds(20)) { try self.subject() == subject ? true : nil }
    }
  }

  @Test func `a renewed certificate is used for new handshakes, and connections stay`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      let scene = renewal.scene
      let (old, oldHTTP) = (try scene.overTLS(), HTTP2Client(try scene.overHTTPS(.http2)))
      #expect(old.tls?.subject == "/CN=one")
      try old.ask("n1.bench.example")
      try renewal.install("two")
      try renewal.wait(for: "/CN=two")
      #expect(try scene.overHTTPS(.http1).tls?.subject == "/CN=two")
      #expect(
        scene.daemon.log.components(separatedBy: "INFO encrypted: new certificate in use, valid until 2120").count == 2)
      let query = TestQuery("n2.bench.example")
      #expect(try old.ask(query).data == ["198.18.0.2"])
      #expect(try oldHTTP.fetch(.get(query)).status == 200)
      // A session of the old certificate is worth its while.
      var offer = TLSOffer(serverName: "dns.test")
      offer.session = try #require(old.tls?.session)
      #expect(try scene.overTLS(offer).ask(query).data == ["198.18.0.2"])
    }
  }

  @Test func `a certificate behind a link that is turned is noticed`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      // As certbot keeps them: a link into a folder of versions.
      for name in ["certificate", "key"] {
        let path = name == "key" ? renewal.key : renewal.certificate
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createSymbolicLink(
          atPath: path, withDestinationPath: renewal.folder.path(of: name == "key" ? "two.key" : "two.pem"))
      }
      #expect(chmod(renewal.folder.path(of: "two.key"), 0o600) == 0)
      try renewal.wait(for: "/CN=two")
      try renewal.maker.make("three", for: "DNS:dns.test")
      #expect(chmod(renewal.folder.path(of: "three.key"), 0o600) == 0)
      for path in [renewal.key, renewal.certificate] {
        let other = "\(path).link"
        try FileManager.default.createSymbolicLink(
          atPath: other,
          withDestinationPath: renewal.folder.path(of: path == renewal.key ? "three.key" : "three.pem"))
        #expect(rename(other, path) == 0)
      }
      try renewal.wait(for: "/CN=three")
    }
  }

  @Test func `a pair that does not fit leaves the old one in use, until the rest of it comes`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      let log = renewal.scene.daemon
      try renewal.install("two", certificate: false)
      let stays = "; the file before it stays in use\n"
      try log.waitForLog("ERROR encrypted.key_file: \(renewal.key): the key is not that of the first certificate")
      try log.waitForLog(stays)
      #expect(try renewal.subject() == "/CN=one")
      try renewal.install("one", certificate: false)
      try log.waitForLog("INFO encrypted.certificate_file: in use again\n")
      try renewal.install("two", certificate: false)
      try eventually("the same fault") { log.log.components(separatedBy: stays).count == 3 ? true : nil }
      try renewal.install("two", key: false)
      try renewal.wait(for: "/CN=two")
      try renewal.maker.make("other", for: "DNS:other.test")
      try renewal.install("other")
      try log.waitForLog(
        "ERROR encrypted.certificate_file: \(renewal.certificate): the certificate is not for dns.test")
      try renewal.maker.make("late", for: "DNS:dns.test", until: 2021)
      try renewal.install("late")
      try log.waitForLog("ERROR encrypted.certificate_file: has expired; the file before it stays in use\n")
      try FileManager.default.removeItem(atPath: renewal.certificate)
      try log.waitForLog("ERROR encrypted.certificate_file: \(renewal.certificate): No such file or directory")
      #expect(try renewal.subject() == "/CN=two")
      #expect(try renewal.scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      // A renewal ends a fault as well, and has its own line.
      #expect(log.log.components(separatedBy: "in use again").count == 2)
    }
  }

  @Test func `an expired certificate keeps nothing from starting, and its renewal is taken`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab, until: 2021)
      let daemon = renewal.scene.daemon
      try daemon.waitForLog("encrypted.certificate_file: has expired ")
      #expect(daemon.log.contains(/ERROR encrypted.certificate_file: has expired \d+ days ago; clients refuse it\n/))
      #expect(try ask(daemon.address, "n1.bench.example").data == ["198.18.0.1"])
      #expect(try renewal.scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      try renewal.install("two")
      try renewal.wait(for: "/CN=two")
    }
  }

  @Test func `a fault of one file does not keep a change of another one from its use`() throws {
    try withLab { lab in
      let tokens = try lab.folder.write("phone 6f1ed002ab559585\n", to: "tokens")
      let renewal = try Renewal(in: lab, "tokens_file = \"\(tokens)\"")
      let offer = TLSOffer(serverName: "6f1ed002ab559585.dns.test")
      func subject() throws -> String? { try renewal.scene.overTLS(offer).tls?.subject }
      #expect(try subject() == "/CN=one")
      _ = try lab.folder.write("phone\n", to: "tokens")
      try renewal.scene.daemon.waitForLog("ERROR encrypted.tokens_file: ")
      try renewal.install("two")
      try eventually("the certificate", within: .seconds(20)) { try subject() == "/CN=two" ? true : nil }
      // The other way round: a token that is removed counts no more, whatever the certificate is.
      for name in ["key of another pair", "expired"] {
        if name == "expired" {
          try renewal.maker.make("late", for: "DNS:dns.test", until: 2021)
          try renewal.install("late")
        } else {
          try renewal.install("one", certificate: false)
        }
        try eventually("the fault", within: .seconds(20)) {
          let log = renewal.scene.daemon.log
          return log.contains(name == "expired" ? "has expired; the" : "is not that of the first") ? true : nil
        }
        let token = name == "expired" ? "phone 6f1ed002ab559585" : "laptop 0123456789abcdef"
        _ = try lab.folder.write("\(token)\n", to: "tokens")
        let other = TLSOffer(serverName: "\(token.split(separator: " ")[1]).dns.test")
        try eventually("the token, with a \(name)", within: .seconds(20)) { try? renewal.scene.overTLS(other) }
      }
    }
  }

  @Test func `a reload takes other files and settings, and connections stay`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      let scene = renewal.scene
      let (old, oldHTTP) = (try scene.overTLS(), HTTP2Client(try scene.overHTTPS(.http2)))
      let query = TestQuery("n1.bench.example")
      #expect(try oldHTTP.fetch(HTTPAsk(target: "/resolve?name=n1.bench.example")).status == 404)
      #expect(chmod(renewal.folder.path(of: "two.key"), 0o600) == 0)
      let files = """
        certificate_file = "\(renewal.folder.path(of: "two.pem"))"
        key_file = "\(renewal.folder.path(of: "two.key"))"
        """
      try scene.daemon.reload(scene.text("\(files)\nname = \"dns.test\"\njson = true\npath = \"/other\"", in: lab))
      try renewal.wait(for: "/CN=two")
      #expect(try old.ask(query).data == ["198.18.0.1"])
      #expect(try oldHTTP.fetch(HTTPAsk(target: "/resolve?name=n1.bench.example")).status == 200)
      #expect(try oldHTTP.fetch(.get(query)).status == 404)
      #expect(try oldHTTP.fetch(.get(query, at: "/other")).status == 200)
      #expect(!scene.daemon.log.contains("needs a restart"))
      // The new file is watched from now on.
      try renewal.maker.make("two", for: "DNS:dns.test,DNS:new.test")
      #expect(chmod(renewal.folder.path(of: "two.key"), 0o600) == 0)
      try scene.daemon.waitForLog("new certificate in use")
      try eventually("the renewed file", within: .seconds(20)) {
        scene.daemon.log.components(separatedBy: "new certificate in use").count == 3 ? true : nil
      }
      // Clients that may not ask any more.
      try scene.daemon.reload(scene.text("\(files)\nallow = [\"127.0.0.2/32\"]", in: lab))
      #expect(throws: HandshakeFailure.closed) { try scene.overTLS() }
      #expect(try scene.overTLS(from: "127.0.0.2").ask(query).data == ["198.18.0.1"])
    }
  }

  @Test func `reloads and renewals under load cost no query and no connection`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      let scene = renewal.scene
      let tls = try scene.overTLS()
      let (http1, http2) = (try scene.overHTTPS(.http1), HTTP2Client(try scene.overHTTPS(.http2)))
      var number = 0
      for round in 0..<10 {
        try renewal.install(round % 2 == 0 ? "two" : "one")
        for isLast in [false, true] {
          if !isLast { scene.daemon.process.signal(SIGHUP) }
          let queries = (0..<20).map { TestQuery("n\(number + $0).bench.example") }
          number += queries.count
          tls.send(queries.flatMap { framed($0.octets) })
          let streams = queries.map { http2.send(.get($0)) }
          http1.send(HTTPAsk.get(queries[0]).octets)
          for reply in try tls.replies(to: queries) { #expect(reply.code == .noError) }
          for stream in streams { #expect(try http2.response(stream).status == 200) }
          #expect(try http1.response().status == 200)
        }
      }
      // An even number of renewals: what counts in the end is the last one.
      try renewal.install("two")
      try renewal.wait(for: "/CN=two")
    }
  }

  @Test func `a reload with files that cannot be used names them, and leaves those before in use`() throws {
    try withLab { lab in
      let renewal = try Renewal(in: lab)
      let scene = renewal.scene
      let missing = "\(lab.folder.path)/missing.pem"
      let keys = "name = \"dns.test\"\nkey_file = \"\(renewal.key)\"\ncertificate_file = \"\(missing)\""
      try scene.daemon.reload(scene.text(keys, in: lab))
      let line = "encrypted.certificate_file: \(missing): No such file or directory"
      #expect(scene.daemon.log.contains("ERROR \(line); the file before it stays in use\n"))
      #expect(try renewal.subject() == "/CN=one")
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
      #expect(scene.daemon.log.components(separatedBy: line).count == 2)
    }
  }

  @Test func `a reload with tokens that cannot be read leaves those before in use, with one line`() throws {
    try withLab { lab in
      let tokens = try lab.folder.write("phone 6f1ed002ab559585\n", to: "tokens")
      let scene = try EncryptedScene(in: lab, "name = \"dns.test\"\ntokens_file = \"\(tokens)\"")
      let phone = TLSOffer(serverName: "6f1ed002ab559585.dns.test")
      let old = try scene.overTLS(phone)
      let missing = "\(lab.folder.path)/missing"
      let line = "encrypted.tokens_file: \(missing): No such file or directory"
      let text = scene.text("name = \"dns.test\"\ntokens_file = \"\(missing)\"", in: lab)
      for _ in 0..<2 {
        try scene.daemon.reload(text)
        #expect(try old.ask("n1.bench.example").data == ["198.18.0.1"])
        #expect(try scene.overTLS(phone).ask("n1.bench.example").data == ["198.18.0.1"])
        for stranger in ["dns.test", "0123456789abcdef.dns.test"] {
          #expect(throws: HandshakeFailure.alert(112)) { try scene.overTLS(TLSOffer(serverName: stranger)) }
        }
      }
      #expect(scene.daemon.log.contains("ERROR \(line); the file before it stays in use\n"))
      #expect(scene.daemon.log.components(separatedBy: line).count == 2)
    }
  }

  @Test func `addresses, connections and idle time need a restart`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let text = scene.text("connections = 10\nper_client = 3\nidle = \"10s\"\nname = \"dns.test\"", in: lab)
        .replacing("dot = [\"127.0.0.1:0\"]", with: "dot = []")
      try scene.daemon.reload(text)
      let line = try #require(
        scene.daemon.log.split(separator: "\n").first { $0.contains("needs a restart to change: ") })
      #expect(
        Set(line.split(separator: ": ").last!.split(separator: ", ")) == [
          "encrypted.dot", "encrypted.connections", "encrypted.per_client", "encrypted.idle",
        ])
      #expect(try scene.overTLS().ask("n1.bench.example").data == ["198.18.0.1"])
    }
  }
}
