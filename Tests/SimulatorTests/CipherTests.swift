// CipherTests.swift -- the simulator's own ciphers and codes, against what providers and their clients publish.

import Ciphers
import DNSWire
import Testing

@testable import httpdns_simulator

@Suite struct `A cipher` {
  private let vectors = Vectors.all

  @Test func `each cipher seals and opens as in the vectors`() throws {
    #expect(vectors.tencent_ciphers.count == 15)
    for vector in vectors.tencent_ciphers {
      let cipher = BlockCipher(try #require(.init(rawValue: vector.mode)), padding: Array(vector.key.utf8))
      let sealed = octets(vector.hex)
      #expect(cipher.open(sealed) == Array(vector.plain.utf8))
      #expect(
        cipher.seal(Array(vector.plain.utf8), vector: Array(sealed.prefix(cipher.mode == .aesCBC ? 16 : 0))) == sealed)
    }
  }

  @Test func `the published sample that its key did not seal is not opened`() throws {
    for vector in vectors.tencent_not_sealed {
      #expect(BlockCipher(.desECB, padding: Array(vector.key.utf8)).open(octets(vector.hex)) == nil)
    }
    #expect(!vectors.tencent_not_sealed.isEmpty)
  }

  @Test(arguments: [BlockCipher.Mode.desECB, .aesCBC, .aesGCM])
  func `text of every length survives each cipher, half of its ciphertext does not`(mode: BlockCipher.Mode) {
    let cipher = BlockCipher(mode, padding: Array("0123456789abcdef".utf8))
    for length in [0, 1, 7, 8, 15, 16, 17, 100] {
      let text = (0..<length).map { UInt8($0) }
      let sealed = cipher.seal(text)
      #expect(cipher.open(sealed) == text)
      #expect(cipher.open(sealed.dropLast()) != text)
      #expect(cipher.open(Array(sealed.prefix(sealed.count / 2))) != text)
    }
    #expect(cipher.open([]) == nil)
  }

  @Test func `GCM detects every changed bit, and another key`() {
    let cipher = BlockCipher(.aesGCM, padding: octets("00112233445566778899aabbccddeeff"))
    let sealed = cipher.seal(Array("text".utf8))
    for position in sealed.indices {
      var changed = sealed
      changed[position] ^= 1
      #expect(cipher.open(changed) == nil)
    }
    #expect(BlockCipher(.aesGCM, padding: [1]).open(sealed) == nil)
  }

  @Test func `two seals of one text differ, except with DES`() {
    for mode in [BlockCipher.Mode.aesCBC, .aesGCM] {
      let cipher = BlockCipher(mode, padding: [1])
      #expect(cipher.seal([1, 2, 3]) != cipher.seal([1, 2, 3]))
    }
    #expect(BlockCipher(.desECB, padding: [1]).seal([1]) == BlockCipher(.desECB, padding: [1]).seal([1]))
  }
}

@Suite struct `An authentication code` {
  @Test func `HMAC is that of RFC 2202 section 2`() {
    let text = Array("what do ya want for nothing?".utf8)
    #expect(Hexadecimal.encode(hmacMD5(text, key: Array("Jefe".utf8))) == "750c783e6ab0b503eaa86e310a5db738")
  }
}
