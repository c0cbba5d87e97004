// CiphersTests.swift -- digests against the vectors of their specifications.

import Ciphers
import DNSWire
import Testing

@Suite struct CiphersTests {
  /// FIPS 180-4 examples, and a message that fills two blocks.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ])
  func `SHA-256 gives the digests of FIPS 180-4`(message: String, digest: String) {
    #expect(Hexadecimal.encode(Digest.sha256(Array(message.utf8))) == digest)
  }

  /// RFC 1321 section A.5.
  @Test(arguments: [
    ("", "d41d8cd98f00b204e9800998ecf8427e"),
    ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    (
      "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
      "57edf4a22be3c955ac49da2e2107b67a"
    ),
  ])
  func `MD5 gives the digests of RFC 1321`(message: String, digest: String) {
    #expect(Hexadecimal.encode(Digest.md5(Array(message.utf8))) == digest)
  }

  @Test func `HMAC-SHA256 gives the codes of RFC 4231`() {
    let first = HMACSHA256(key: [UInt8](repeating: 0x0b, count: 20)).code(of: Array("Hi There".utf8))
    #expect(
      Hexadecimal.encode(first) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    let second = HMACSHA256(key: Array("Jefe".utf8)).code(of: Array("what do ya want for nothing?".utf8))
    #expect(
      Hexadecimal.encode(second) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    // Test case 6: a key longer than a block is hashed first.
    let long = HMACSHA256(key: [UInt8](repeating: 0xaa, count: 131)).code(
      of: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8))
    #expect(Hexadecimal.encode(long) == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
  }

  @Test func `HMAC-SHA256 with an empty key does not use the key of the call before`() {
    _ = HMACSHA256(key: Array("Jefe".utf8)).code(of: [])
    #expect(
      Hexadecimal.encode(HMACSHA256(key: []).code(of: []))
        == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }

  @Test func `the code of a message does not depend on earlier messages`() {
    let key = HMACSHA256(key: Array("Jefe".utf8))
    let message = Array("what do ya want for nothing?".utf8)
    let code = key.code(of: message)
    for length in 0...130 {
      _ = key.code(of: RandomOctets.generate(count: length))
      #expect(key.code(of: message) == code)
    }
  }

  @Test func `random octets do not repeat`() {
    let all = (0..<1_000).map { _ in RandomOctets.generate(count: 16) }
    #expect(Set(all).count == all.count)
    // Wiped octets are not returned.
    #expect(!all.contains([UInt8](repeating: 0, count: 16)))
  }

  @Test func `the generator returns the requested number of random octets`() {
    for count in [0, 1, 511, 512, 513, 5_000] {
      let octets = RandomOctets.generate(count: count)
      #expect(octets.count == count)
      #expect(count < 500 || Set(octets).count > 100)
    }
  }

  @Test func `the key of an HMAC appears in no description`() {
    let key = HMACSHA256(key: Array("canary".utf8))
    var dumped = ""
    dump([key], to: &dumped)
    for shown in ["\(key)", String(reflecting: key), "\([key])", dumped] {
      #expect(shown.contains("••••") && !shown.contains("canary") && !shown.contains("99"))
    }
  }

  @Test func `a secret appears in no description`() {
    let secret = Secret("canary")
    var dumped = ""
    dump([secret], to: &dumped)
    for shown in ["\(secret)", String(reflecting: secret), "\([secret])", dumped] {
      #expect(!shown.contains("canary"))
    }
    #expect(secret.reveal == Array("canary".utf8))
  }
}
