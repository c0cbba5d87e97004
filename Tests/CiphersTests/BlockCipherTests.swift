// BlockCipherTests.swift -- AES and DES against published vectors, and ciphertexts that must not decrypt.

import CCrypto
import Ciphers
import DNSWire
import Foundation
import TestSupport
import Testing

/// The vectors in `provider_vectors.json` for the ciphers of Tencent Cloud HTTPDNS.
private struct CipherVectors: Decodable {
  struct Vector: Decodable {
    let key, plain, hex: String
    let iv_hex: String?
  }
  struct Broken: Decodable {
    let key, hex: String
  }
  struct DES: Decodable {
    let published, vectors: [Vector]
    let published_but_invalid: [Broken]
  }
  struct AES: Decodable {
    let vectors: [Vector]
  }
  struct Reply: Decodable {
    let plain, des_hex, aes_hex: String
  }
  struct Tencent: Decodable {
    let des: DES
    let aes: AES
    let response_plaintexts, conf: [Reply]
  }
  let tencent: Tencent

  static let tencent: Tencent = {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../HTTPDNSTests/Data/provider_vectors.json")
    return try! JSONDecoder().decode(CipherVectors.self, from: Data(contentsOf: file)).tencent
  }()
}

@Suite struct BlockCipherTests {
  private let vectors = CipherVectors.tencent
  private let zeroes = [UInt8](repeating: 0, count: 16)

  private func octets(_ hexadecimal: String) throws -> [UInt8] { try #require(Hexadecimal.decode(hexadecimal)) }

  private func des(_ key: String) -> BlockCipher { BlockCipher(.desECB, key: Array(key.utf8.prefix(8))) }

  /// Each mode with a key and a vector.
  private var all: [(cipher: BlockCipher, vector: [UInt8])] {
    [BlockCipher.Mode.aesCBC, .aesGCM, .desECB].map { mode in
      (BlockCipher(mode, key: Array((0..<16).prefix(mode.keyLength))), Array((100..<116).prefix(mode.vectorLength)))
    }
  }

  /// SP 800-38A sections F.2.1 and F.2.2. They are four whole blocks: the padding adds the fifth, whose value is
  /// that of `openssl enc -aes-128-cbc`.
  @Test func `AES-128-CBC gives the ciphertext of SP 800-38A, with a block of padding`() throws {
    let cipher = BlockCipher(.aesCBC, key: try octets("2b7e151628aed2a6abf7158809cf4f3c"))
    let vector = try octets("000102030405060708090a0b0c0d0e0f")
    let plaintext = try octets(
      "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
    let ciphertext = try octets(
      "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
        + "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"
        + "8cb82807230e1321d3fae00d18cc2012")
    #expect(cipher.encrypt(plaintext, vector: vector) == ciphertext)
    #expect(cipher.decrypt(ciphertext[...], vector: vector) == plaintext)
    // Without the block of padding the last one does not end as padding does.
    #expect(cipher.decrypt(ciphertext[..<64], vector: vector) == nil)
  }

  /// FIPS 81 table B1; the padding's block is that of `openssl enc -des-ede3` with the key three times.
  @Test func `DES-ECB gives the ciphertext of FIPS 81, with a block of padding`() throws {
    let cipher = BlockCipher(.desECB, key: try octets("0123456789abcdef"))
    let plaintext = Array("Now is the time for all ".utf8)
    let ciphertext = try octets("3fa40e8a984d48156a271787ab8883f9893d51ec4b563b53086f9a1d74c94d4e")
    #expect(cipher.encrypt(plaintext, vector: []) == ciphertext)
    #expect(cipher.decrypt(ciphertext[...], vector: []) == plaintext)
    #expect(cipher.decrypt(ciphertext[..<24], vector: []) == nil)
  }

  /// Test cases 1 to 3 of the specification ("The Galois/Counter Mode of Operation", appendix B): AES-128, vectors of
  /// 96 bits, no data that is only authenticated.
  @Test(arguments: [
    (
      "00000000000000000000000000000000", "000000000000000000000000", "", "", "58e2fccefa7e3061367f1d57a4e7455a"
    ),
    (
      "00000000000000000000000000000000", "000000000000000000000000", "00000000000000000000000000000000",
      "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"
    ),
    (
      "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        + "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
      "4d5c2af327cd64a62cf35abd2ba6fab4"
    ),
  ])
  func `AES-128-GCM gives ciphertext and tag of its specification`(
    key: String, vector: String, plaintext: String, ciphertext: String, tag: String
  ) throws {
    let cipher = BlockCipher(.aesGCM, key: try octets(key))
    let vector = try octets(vector)
    let sealed = try octets(ciphertext + tag)
    #expect(cipher.encrypt(try octets(plaintext), vector: vector) == sealed)
    #expect(cipher.decrypt(sealed[...], vector: vector) == (try octets(plaintext)))
  }

  @Test func `Tencent's DES vectors encrypt and decrypt`() throws {
    for vector in vectors.des.published + vectors.des.vectors {
      let cipher = des(vector.key)
      #expect(Hexadecimal.encode(cipher.encrypt(Array(vector.plain.utf8), vector: [])) == vector.hex)
      #expect(cipher.decrypt(try octets(vector.hex)[...], vector: []) == Array(vector.plain.utf8))
    }
    #expect(vectors.des.published.count == 3 && vectors.des.vectors.count == 6)
  }

  @Test func `the reply that Tencent printed next to the wrong key does not decrypt`() throws {
    #expect(vectors.des.published_but_invalid.count == 1)
    for vector in vectors.des.published_but_invalid {
      #expect(des(vector.key).decrypt(try octets(vector.hex)[...], vector: []) == nil)
    }
  }

  @Test func `Tencent's AES vectors encrypt and decrypt`() throws {
    #expect(vectors.aes.vectors.count == 6)
    for vector in vectors.aes.vectors {
      let cipher = BlockCipher(.aesCBC, key: Array(vector.key.utf8))
      let initial = try octets(try #require(vector.iv_hex))
      let sealed = initial + cipher.encrypt(Array(vector.plain.utf8), vector: initial)
      #expect(Hexadecimal.encode(sealed) == vector.hex)
      #expect(cipher.decrypt(sealed[16...], vector: initial) == Array(vector.plain.utf8))
    }
  }

  @Test func `Tencent's replies are the same text from both ciphers`() throws {
    let replies = (vectors.response_plaintexts + vectors.conf).filter { !$0.plain.isEmpty }
    #expect(replies.count == 13)
    for reply in replies {
      #expect(des("DesKey01").decrypt(try octets(reply.des_hex)[...], vector: []) == Array(reply.plain.utf8))
      let sealed = try octets(reply.aes_hex)
      let cipher = BlockCipher(.aesCBC, key: Array("AesKey0123456789".utf8))
      #expect(cipher.decrypt(sealed[16...], vector: Array(sealed[..<16])) == Array(reply.plain.utf8))
    }
  }

  @Test func `plaintexts of every length up to 100 survive every mode`() {
    for (cipher, vector) in all {
      for length in 0...100 {
        let plaintext = RandomOctets.generate(count: length)
        let ciphertext = cipher.encrypt(plaintext, vector: vector)
        let block = cipher.mode == .desECB ? 8 : 16
        #expect(ciphertext.count == (cipher.mode == .aesGCM ? length + 16 : (length / block + 1) * block))
        // A slice that begins elsewhere than at 0.
        #expect(cipher.decrypt(([1, 2, 3] + ciphertext)[3...], vector: vector) == plaintext)
      }
    }
  }

  @Test func `empty ciphertext and incomplete blocks are refused`() {
    for (cipher, vector) in all where cipher.mode != .aesGCM {
      let ciphertext = cipher.encrypt(Array("thirty-three octets, one too many".utf8), vector: vector)
      let block = cipher.mode == .desECB ? 8 : 16
      for length in 0..<ciphertext.count where length % block != 0 || length == 0 {
        #expect(cipher.decrypt(ciphertext[..<length], vector: vector) == nil, "\(cipher.mode) \(length)")
      }
      #expect(cipher.decrypt((ciphertext + [0])[...], vector: vector) == nil)
    }
  }

  /// In CBC mode the second to last block modifies the last plaintext block, which allows a test to forge any padding.
  @Test func `exactly the valid paddings are accepted`() {
    let cipher = BlockCipher(.aesCBC, key: zeroes)
    // Only a block of padding: sixteen octets of 16.
    let block = cipher.encrypt([], vector: zeroes)
    #expect(block.count == 16)
    for last in UInt8.min...UInt8.max {
      for wrong in 0..<16 {
        // The vector turns the plaintext block into `last` everywhere, but for one octet where `wrong` is not 15.
        var vector = zeroes.map { $0 ^ 16 ^ last }
        if wrong < 15 { vector[wrong] ^= 0x40 }
        let isPadding = (1...16).contains(last) && (wrong == 15 || wrong < 16 - Int(last))
        let plaintext = cipher.decrypt(block[...], vector: vector)
        #expect((plaintext?.count == 16 - Int(last)) == isPadding, "\(last) \(wrong)")
        #expect(isPadding || plaintext == nil, "\(last) \(wrong)")
      }
    }
  }

  @Test func `GCM refuses every truncation and every flipped bit of ciphertext, tag and vector`() {
    let cipher = BlockCipher(.aesGCM, key: Array(1...16))
    let vector = Array<UInt8>(20..<32)
    let plaintext = Array("www.example.com and 20 more".utf8)
    let sealed = cipher.encrypt(plaintext, vector: vector)
    #expect(cipher.decrypt(sealed[...], vector: vector) == plaintext)
    for length in 0..<sealed.count {
      #expect(cipher.decrypt(sealed[..<length], vector: vector) == nil)
      #expect(cipher.decrypt(sealed[(sealed.count - length)...], vector: vector) == nil)
    }
    for bit in 0..<(sealed.count * 8) {
      var broken = sealed
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(cipher.decrypt(broken[...], vector: vector) == nil)
    }
    for bit in 0..<(vector.count * 8) {
      var broken = vector
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(cipher.decrypt(sealed[...], vector: broken) == nil)
    }
    #expect(cipher.decrypt((sealed + [0])[...], vector: vector) == nil)
  }

  /// TLS on the same thread would report a queued error as its connection's.
  @Test func `a refusal does not change libcrypto's error queue`() {
    ERR_clear_error()
    for (cipher, vector) in all {
      for length in [0, 1, 16, 31, 32] {
        #expect(cipher.decrypt([UInt8](repeating: 7, count: length)[...], vector: vector) == nil)
        #expect(ERR_peek_error() == 0, "\(cipher.mode) \(length)")
      }
    }
    #expect(EVP_CIPHER_fetch(nil, "no such cipher", nil) == nil)
    let before = ERR_peek_last_error()
    #expect(before != 0)
    #expect(all[0].cipher.decrypt(zeroes[...], vector: zeroes) == nil)
    #expect(ERR_peek_last_error() == before)
    ERR_clear_error()
  }

  @Test func `a cipher works the same after refusals and after other texts`() {
    for (cipher, vector) in all {
      let plaintext = Array("www.example.com".utf8)
      let sealed = cipher.encrypt(plaintext, vector: vector)
      for length in 0...40 {
        _ = cipher.decrypt([UInt8](repeating: 7, count: length)[...], vector: vector)
        #expect(cipher.decrypt(sealed[...], vector: vector) == plaintext)
        _ = cipher.encrypt([UInt8](repeating: 7, count: length), vector: vector.map { $0 ^ 1 })
        #expect(cipher.encrypt(plaintext, vector: vector) == sealed)
      }
    }
  }

  @Test func `another key does not decrypt`() {
    let sealed = BlockCipher(.aesGCM, key: zeroes).encrypt([1, 2, 3], vector: Array(zeroes.prefix(12)))
    let other = BlockCipher(.aesGCM, key: Array(zeroes.dropLast()) + [1])
    #expect(other.decrypt(sealed[...], vector: Array(zeroes.prefix(12))) == nil)
    let plaintext = Array("www.dnspod.cn".utf8)
    // DES ignores the lowest bit of each octet; this flips the next one.
    let near = des("dnspodp" + "c")
    #expect(near.decrypt(des("dnspodpa").encrypt(plaintext, vector: [])[...], vector: []) != plaintext)
  }

  @Test func `decrypting random octets never crashes`() {
    var random = SeededGenerator(seed: testSeed)
    for (cipher, vector) in all {
      var taken = 0
      for _ in 0..<3_000 {
        let ciphertext = random.octets(Int.random(in: 0...80, using: &random))
        guard let plaintext = cipher.decrypt(ciphertext[...], vector: vector) else { continue }
        taken += 1
        #expect(plaintext.count < ciphertext.count)
      }
      if cipher.mode == .aesGCM { #expect(taken == 0) }
    }
  }

  @Test func `the key of a cipher appears in no description`() {
    for mode in [BlockCipher.Mode.aesCBC, .aesGCM, .desECB] {
      let key = Array("canary-secretkey".utf8.prefix(mode.keyLength))
      let cipher = BlockCipher(mode, key: key)
      var dumped = ""
      dump([cipher], to: &dumped)
      for shown in ["\(cipher)", String(reflecting: cipher), "\([cipher])", "\(cipher as Any)", dumped] {
        #expect(shown.contains("••••"))
        for hidden in ["canary", "99", "63616e617279", "0x63"] { #expect(!shown.contains(hidden)) }
      }
      #expect(Mirror(reflecting: cipher).children.isEmpty)
    }
  }
}
