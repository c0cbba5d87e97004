// EMASv2DialectTests.swift -- version 2 of the EMAS API: signatures, encryption, and what replies mean.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import Testing

@testable import HTTPDNS

@Suite struct EMASv2DialectTests {
  let www = "www.example.com"
  let good = #"{"dn":"www.example.com","v4":{"ips":["192.0.2.1"],"ttl":60}}"#

  @Test func `the signature covers values as they are, and a batch with a client's address`() throws {
    let dialect = try EMASv2Dialect(accountID: "a&b", secretKey: emasKey, isEncrypted: true)
    let target = dialect.request(
      for: batch(["a.example", "b.example"], [.aaaa], subnet: "203.0.113.0/24"), unixTime: 1_700_000_000
    ).target
    let signed = "cip=203.0.113.0&dn=a.example,b.example&exp=1700000600&id=a&b&m=0&q=6&v=1.0"
    let key = try #require(Hexadecimal.decode(emasKey.reveal))
    let signature = Hexadecimal.encode(HMACSHA256(key: key).code(of: Array(signed.utf8)))
    #expect(
      target
        == "/v2/d?id=a%26b&m=0&dn=a.example,b.example&cip=203.0.113.0&q=6&exp=1700000600&v=1.0&s=\(signature)")
  }

  @Test func `without a secret nothing is signed and nothing expires`() {
    #expect(
      emasV2Dialect(secretKey: nil).request(for: batch([www]), unixTime: 7).target
        == "/v2/d?id=100000&m=0&dn=www.example.com&q=4&v=1.0")
    let sealed = parameters(emasV2Dialect(aes: .gcm, secretKey: nil).request(for: batch([www]), unixTime: 7).target)
    #expect(sealed.count == 4 && sealed.contains("m=2"))
  }

  @Test func `an encrypted request holds names, families and address in the ciphertext only`() throws {
    for (aes, mode) in [(Configuration.AESMode.cbc, BlockCipher.Mode.aesCBC), (.gcm, .aesGCM)] {
      let request = emasV2Dialect(aes: aes).request(
        for: batch(["a.example", "b.example"], [.a, .aaaa], subnet: "203.0.113.0/24"), unixTime: 0)
      let sealed = try #require(parameters(request.target).first { $0.hasPrefix("enc=") }?.dropFirst(4))
      let octets = try #require(Hexadecimal.decode(String(sealed)))
      let cipher = BlockCipher(mode, key: try #require(Hexadecimal.decode(emasAESKey.reveal)))
      let vector = Array(octets[..<mode.vectorLength])
      let plain = cipher.decrypt(octets[mode.vectorLength...], vector: vector)
      #expect(
        plain.map { String(decoding: $0, as: UTF8.self) }
          == #"{"dn":"a.example,b.example","q":"4,6","cip":"203.0.113.0"}"#)
      #expect(!request.target.contains("example") && !request.target.contains("203.0.113"))
    }
  }

  @Test func `two encrypted requests have different vectors`() throws {
    let dialect = try EMASv2Dialect(
      accountID: "1", secretKey: nil, aesSecretKey: emasAESKey, aesMode: .gcm, isEncrypted: false)
    let targets = (0..<8).map { _ in dialect.request(for: batch([www]), unixTime: 0).target }
    #expect(Set(targets).count == 8)
  }

  @Test func `keys that are no hexadecimal text or have another length are refused`() {
    func refusal(_ secretKey: String?, _ aesSecretKey: String?) -> EMASKeyError? {
      do throws(EMASKeyError) {
        _ = try EMASv2Dialect(
          accountID: "1", secretKey: secretKey.map { Secret($0) }, aesSecretKey: aesSecretKey.map { Secret($0) },
          isEncrypted: true)
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal("00ff", nil) == nil && refusal(nil, String(repeating: "Aa", count: 16)) == nil)
    for key in ["", "0", "0g", "EmasSecret01"] { #expect(refusal(key, nil) == .secretKey) }
    for key in ["", "00", String(repeating: "0", count: 31), String(repeating: "0", count: 34), "AesKey0123456789"] {
      #expect(refusal(nil, key) == .aesSecretKey)
    }
    #expect(EMASKeyError.secretKey.description != EMASKeyError.aesSecretKey.description)
  }

  @Test(arguments: [
    (#"{"ips":[],"no_ip_code":"RRNotExist"}"#, false), (#"{"no_ip_code":"RRNotExist"}"#, false),
    (#"{"ips":[],"no_ip_code":"DomainNotExist"}"#, true), (#"{"ips":[],"no_ip_code":"Other"}"#, true),
    (#"{"ips":[],"no_ip_code":7}"#, true), (#"{"ips":[],"ttl":60}"#, true), (#"{"ips":[],"no_ip_code":""}"#, true),
  ])
  func `only RRNotExist means NODATA`(family: String, isAmbiguous: Bool) {
    let body = v2Body(#"{"dn":"www.example.com","v4":\#(family)}"#)
    #expect(outcomes(batch([www]), json(body), emasV2) == [noData(isAmbiguous: isAmbiguous)])
  }

  @Test func `addresses count whatever reason the reply gives`() {
    let body = v2Body(#"{"dn":"www.example.com","v4":{"ips":["192.0.2.1"],"no_ip_code":"RRNotExist"}}"#)
    #expect(outcomes(batch([www]), json(body), emasV2) == [positive(a(www, 60, "192.0.2.1"))])
  }

  @Test func `names and families that a reply leaves out are not answered`() {
    let body = v2Body(
      #"{"dn":"B.example.","v6":{"ips":["2001:db8::2"],"ttl":9}},{"dn":"c.example","v4":{"ips":["192.0.2.3"],"ttl":0}}"#
    )
    #expect(
      outcomes(batch(["a.example", "b.example", "c.example"], [.a, .aaaa]), json(body), emasV2) == [
        .failure(.wrongQuestion), .failure(.wrongQuestion), .failure(.wrongQuestion),
        positive(a("b.example", 9, "2001:db8::2")), positive(a("c.example", 60, "192.0.2.3")), .failure(.wrongQuestion),
      ])
  }

  @Test func `mode may be a number or a text, and absent in a plain reply`() {
    let expected = [positive(a(www, 60, "192.0.2.1"))]
    for mode in ["0", #""0""#, "null"] {
      let body = v2Body(good).replacing(#""mode":"0""#, with: #""mode":\#(mode)"#)
      #expect(outcomes(batch([www]), json(body), emasV2) == expected, "\(mode)")
    }
    for (aes, number) in [(Configuration.AESMode.cbc, 1), (.gcm, 2)] {
      let body = v2Body(good, aes: aes).replacing(#""mode":"\#(number)""#, with: #""mode":\#(number)"#)
      #expect(body.contains(#""mode":\#(number),"#))
      #expect(outcomes(batch([www]), json(body), emasV2Dialect(aes: aes)) == expected)
    }
    for mode in ["1", #""x""#, "3", "[]", "0.5"] {
      let body = v2Body(good).replacing(#""mode":"0""#, with: #""mode":\#(mode)"#)
      #expect(outcomes(batch([www]), json(body), emasV2) == [.failure(.unreadable(.shape("mode")))], "\(mode)")
    }
  }

  @Test func `a reply in another mode than the request's is refused`() {
    let modes: [Configuration.AESMode?] = [nil, .cbc, .gcm]
    for sent in modes {
      for received in modes where received != sent {
        let results = outcomes(batch([www]), json(v2Body(good, aes: received)), emasV2Dialect(aes: sent))
        #expect(results == [.failure(.unreadable(.shape("mode")))])
      }
    }
  }

  @Test func `ciphertext that was changed, cut or made with another key is refused`() throws {
    func result(_ data: String, _ aes: Configuration.AESMode) -> Result<HTTPDNSAnswer, HTTPDNSFailure>? {
      let body = #"{"code":"success","mode":\#(aes == .gcm ? 2 : 1),"data":"\#(data)"}"#
      return outcomes(batch([www]), json(body), emasV2Dialect(aes: aes)).first
    }
    let unreadable: Result<HTTPDNSAnswer, HTTPDNSFailure> = .failure(.unreadable(.cipher))
    for aes in [Configuration.AESMode.cbc, .gcm] {
      for data in ["", "AAAA", "!!!!", "AAA", String(repeating: "A", count: 16), String(repeating: "A", count: 60)] {
        #expect(result(data, aes) == unreadable, "\(data)")
      }
    }
    let mode = BlockCipher.Mode.aesGCM
    let vector = [UInt8](repeating: 7, count: mode.vectorLength)
    let plain = Array(#"{"answers":[\#(good)]}"#.utf8)
    let key = try #require(Hexadecimal.decode(emasAESKey.reveal))
    let octets = vector + BlockCipher(mode, key: key).encrypt(plain, vector: vector)
    #expect(result(Base64.encode(octets), .gcm) == positive(a(www, 60, "192.0.2.1")))
    for index in octets.indices {
      var changed = octets
      changed[index] ^= 1
      #expect(result(Base64.encode(changed), .gcm) == unreadable, "\(index)")
    }
    let other = BlockCipher(mode, key: key.reversed()).encrypt(plain, vector: vector)
    #expect(result(Base64.encode(vector + other), .gcm) == unreadable)
    let noJSON = BlockCipher(mode, key: key).encrypt(Array("no JSON".utf8), vector: vector)
    #expect(result(Base64.encode(vector + noJSON), .gcm) == .failure(.unreadable(.syntax)))
  }

  @Test(arguments: [
    ("[]", "code"), ("{}", "code"), (#"{"code":"success"}"#, "data"),
    (#"{"code":"success","data":{}}"#, "answers"), (#"{"data":{"answers":[]}}"#, "code"),
    (#"{"code":"fine","data":{"answers":[]}}"#, "code"), (#"{"code":"success","data":{"answers":{}}}"#, "answers"),
    (#"{"code":"success","data":{"answers":[{"dn":"www.example.com","v4":{"ips":{}}}]}}"#, "ips"),
  ])
  func `EMAS v2 JSON of another shape is refused, and the failure names the member`(body: String, member: String) {
    #expect(failure(of: json(body), to: question(www), with: emasV2) == .unreadable(.shape(member)))
  }

  @Test func `an element without what is optional is read, and a senseless one leaves its neighbours`() {
    let asked = batch([www])
    let family = #""v4":{"ips":["192.0.2.1"],"ttl":57}"#
    for elements in ["{\(family)}", #"7,{"dn":"www.example.com",\#(family)},{"dn":"www.example.com"}"#] {
      #expect(outcomes(asked, json(v2Body(elements)), emasV2) == [positive(a(www, 57, "192.0.2.1"))])
    }
    for elements in [#"{"dn":"www.example.com","v4":[]}"#, #"{"dn":"www.example.com","v4":{"ttl":60}}"#, #"{"v4":{}}"#]
    {
      #expect(outcomes(asked, json(v2Body(elements)), emasV2) == [noData()])
    }
    #expect(outcomes(asked, json(v2Body("7")), emasV2) == [.failure(.wrongQuestion)])
  }

  @Test func `parameters of the account's own are signed, or encrypted with the name`() throws {
    func target(_ aes: Configuration.AESMode?) throws -> String {
      try EMASv2Dialect(
        accountID: "100000", secretKey: emasKey, aesSecretKey: aes.map { _ in emasAESKey }, aesMode: .cbc,
        parameters: ["sdns-isp": "mobile"], isEncrypted: true, random: { (0..<$0).map { UInt8($0) } }
      ).request(for: batch([www]), unixTime: 1_700_000_000).target
    }
    let signed = "dn=www.example.com&exp=1700000600&id=100000&m=0&q=4&sdns-isp=mobile&v=1.0"
    let code = HMACSHA256(key: Hexadecimal.decode(emasKey.reveal)!).code(of: Array(signed.utf8))
    #expect(try parameters(target(nil)).isSuperset(of: ["sdns-isp=mobile", "s=\(Hexadecimal.encode(code))"]))
    let sealed = try #require(parameters(target(.cbc)).first { $0.hasPrefix("enc=") }?.dropFirst(4))
    let octets = Hexadecimal.decode(String(sealed))!
    let key = BlockCipher(.aesCBC, key: Hexadecimal.decode(emasAESKey.reveal)!)
    let plain = key.decrypt(octets[16...], vector: Array(octets[..<16])).map { String(decoding: $0, as: UTF8.self) }
    #expect(plain == #"{"dn":"www.example.com","q":"4","sdns-isp":"mobile"}"#)
  }
}
