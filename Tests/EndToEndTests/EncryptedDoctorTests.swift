// EncryptedDoctorTests.swift -- what `doctor` finds at the encrypted listeners, where phones say only that they cannot connect.

import TLSTestSupport
import Testing

@Suite(.blocking) struct EncryptedDoctorTests {
  @Test func `each listener with TLS is asked as a strict client would`() throws {
    try withLab { lab in
      let scene = try EncryptedScene(in: lab)
      let text = scene.text("name = \"dns.test\"", in: lab)
        .replacing("\ndot = [\"127.0.0.1:0\"]", with: "\ndot = [\"\(scene.dot)\"]")
        .replacing("\ndoh = [\"127.0.0.1:0\"]", with: "\ndoh = [\"\(scene.doh)\"]")
      let other = try lab.folder.write(Certificates.otherAuthority, to: "other.pem")
      func findings(_ text: String, trusting authority: String) throws -> [Substring] {
        let output = try lab.run(
          "doctor", "--config", lab.file(text),
          environment: ["SSL_CERT_FILE": authority, "SSL_CERT_DIR": "/nonexistent"]
        ).output
        return output.split(separator: "\n").filter { $0.contains(#/^(?:DoT|DoH|encrypted) /#) }
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
