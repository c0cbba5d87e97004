// SealTests.swift -- sealed octets open with their key and associated data only; keys are derived as RFC 5869 says.

import Ciphers
import DNSWire
import Testing

@Suite struct `A seal` {
  private let key = Array(0..<32).map { UInt8($0) }
  private let text = Array("www.example.com".utf8)

  @Test func `opens with the same key and associated data`() {
    for length in [0, 1, 15, 16, 17, 1000, 65_000] {
      let text = [UInt8](repeating: 7, count: length)
      let sealed = Seal.seal(text, key: key, associated: [1, 2])
      #expect(sealed.count == length + Seal.overhead)
      #expect(Seal.open(sealed[...], key: key, associated: [1, 2]) == text)
    }
  }

  @Test func `opens with nothing else`() {
    let sealed = Seal.seal(text, key: key, associated: [1, 2])
    #expect(Seal.open(sealed[...], key: key.reversed(), associated: [1, 2]) == nil)
    #expect(Seal.open(sealed[...], key: key, associated: [1]) == nil)
    #expect(Seal.open(sealed[...], key: key, associated: []) == nil)
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 1
      #expect(Seal.open(changed[...], key: key, associated: [1, 2]) == nil)
      #expect(Seal.open(sealed[..<index], key: key, associated: [1, 2]) == nil)
    }
  }

  @Test func `never looks the same twice`() {
    #expect(Seal.seal(text, key: key, associated: []) != Seal.seal(text, key: key, associated: []))
  }

  // Test case 16 of the GCM specification (McGrew and Viega): AES-256, with associated data.
  @Test func `is what the GCM specification says`() throws {
    func octets(_ text: String) throws -> [UInt8] { try #require(Hexadecimal.decode(Array(text.utf8))) }
    let key = try octets("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
    let nonce = try octets("cafebabefacedbaddecaf888")
    let associated = try octets("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    let ciphertext = try octets(
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0a"
        + "bcc9f662")
    let tag = try octets("76fc6ece0f4e1768cddf8853bb2d551b")
    let plaintext = try octets(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
        + "ba637b39")
    #expect(Seal.open((nonce + ciphertext + tag)[...], key: key, associated: associated) == plaintext)
  }

  // RFC 5869 appendix A.3: no salt, no info; the first 32 octets.
  @Test func `keys are derived as the RFC says`() throws {
    let secret = [UInt8](repeating: 0x0B, count: 22)
    #expect(
      HKDF.sha256(secret, label: "")
        == Hexadecimal.decode(Array("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d".utf8)))
    #expect(HKDF.sha256(secret, label: "name") != HKDF.sha256(secret, label: "seal"))
  }
}
