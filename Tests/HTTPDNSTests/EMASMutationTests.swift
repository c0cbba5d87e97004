// EMASMutationTests.swift -- broken replies and tables by the thousand: no crash, and no address out of nowhere.

import Ciphers
import Configuration
import DNSWire
import Foundation
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPDNS

@Suite struct EMASMutationTests {
  /// Who reads a body.
  enum Reader: CaseIterable {
    case v1, v2, cbc, gcm, schedule, table

    /// A body that is accepted.
    var body: String {
      switch self {
      case .v1:
        #"""
        {"dns":[{"host":"a.example","ips":["192.0.2.1","192.0.2.2"],"type":1,"ttl":57,"origin_ttl":60},
        {"host":"a.example","ips":["2001:db8::1"],"type":28,"ttl":57},{"host":"b.example","ips":[],"ipsv6":["2001:db8::2"]}]}
        """#
      case .v2: v2Body(Reader.answers)
      // What is inside of the ciphertext.
      case .cbc, .gcm: #"{"answers":[\#(Reader.answers)]}"#
      case .schedule:
        #"{"service_ip":["192.0.2.1","192.0.2.2"],"service_ip_port":[80,8080],"service_ipv6":["2001:db8::1"]}"#
      case .table:
        #"""
        {"service":"x","enable":1,"domainlist":[{"domain":"a.example","ips":["192.0.2.1","2001:db8::1"]},
        {"domain":"b.example","ips":["192.0.2.2"]}]}
        """#
      }
    }

    /// The addresses that are read from a body; nil where it is refused.
    func addresses(_ body: [UInt8]) -> [IPAddress]? {
      switch self {
      case .v1: answered(body, by: emas)
      case .v2: answered(body, by: emasV2)
      case .cbc: answered(sealed(body, .aesCBC), by: emasV2Dialect(aes: .cbc))
      case .gcm: answered(sealed(body, .aesGCM), by: emasV2Dialect(aes: .gcm))
      case .schedule: scheduled(body)
      case .table: listed(body)
      }
    }

    private static let answers =
      #"{"dn":"a.example","v4":{"ips":["192.0.2.1","192.0.2.2"],"ttl":60},"v6":{"ips":["2001:db8::1"],"ttl":60}},"#
      + #"{"dn":"b.example","v4":{"ips":["192.0.2.3"]},"v6":{"ips":[],"ttl":60,"no_ip_code":"RRNotExist"}}"#

    private static let asked = batch(["a.example", "b.example"], [.a, .aaaa])

    private func response(_ body: [UInt8]) -> HTTPResponse {
      HTTPResponse(status: 200, contentType: "application/json", body: body)
    }

    private func answered(_ body: [UInt8], by dialect: any BatchDialect) -> [IPAddress]? {
      guard let results = try? dialect.answers(to: Reader.asked, from: response(body)) else { return nil }
      #expect(results.count == Reader.asked.questions.count)
      return zip(Reader.asked.questions, results).flatMap { question, result in
        let answer = try? result.get()
        #expect(answer?.answers.allSatisfy { $0.owner == question.name && $0.type == question.type } ?? true)
        #expect(answer?.answers.allSatisfy { $0.ttl <= Int32.max } ?? true)
        #expect(answer.map { $0.isNegative == $0.answers.isEmpty && $0.responseCode == .noError } ?? true)
        return answer?.answers.compactMap { IPAddress(octets: $0.rdata) } ?? []
      }
    }

    private func scheduled(_ body: [UInt8]) -> [IPAddress]? {
      guard let servers = try? EMASSchedule(accountID: "1").servers(from: response(body)), !servers.isEmpty else {
        return nil
      }
      return servers.compactMap { if case .address(let address) = $0.host { address } else { nil } }
    }

    private func listed(_ body: [UInt8]) -> [IPAddress]? {
      guard let table = try? AddressTable(response(body)) else { return nil }
      return Reader.asked.questions.flatMap { table.answer(to: $0, ttl: 60)?.answers ?? [] }
        .compactMap { IPAddress(octets: $0.rdata) }
    }

    /// A sound body whose ciphertext holds a broken text.
    private func sealed(_ text: [UInt8], _ mode: BlockCipher.Mode) -> [UInt8] {
      let cipher = BlockCipher(mode, key: Hexadecimal.decode(emasAESKey.reveal)!)
      let vector = [UInt8](repeating: 9, count: mode.vectorLength)
      let data = Base64.encode(vector + cipher.encrypt(text, vector: vector))
      return Array(#"{"code":"success","mode":\#(mode == .aesGCM ? 2 : 1),"data":"\#(data)"}"#.utf8)
    }
  }

  static let fragments = [
    "{", "}", "[", "]", "\"", "\\", ":", ",", "null", "true", "-1", "0", "4294967296", "1e400", "\\u0000", "\\u0031",
    "\u{0}", #""ips":["198.51.100.7"],"#, #""code":"InternalError","#, #""type":28"#, #""ttl":0"#, "a.example", "..",
    "198.51.100.9", "2001:db8::99", "\u{e9}", #""enable":0,"#, "RRNotExist",
  ]

  /// Every address that a string of a JSON text is, by another parser than the one under test.
  private func addresses(in body: [UInt8]) -> Set<IPAddress> {
    var found: Set<IPAddress> = []
    var rest: [Any] = (try? JSONSerialization.jsonObject(with: Data(body))).map { [$0] } ?? []
    while let value = rest.popLast() {
      switch value {
      case let text as String: IPAddress(text: text).map { _ = found.insert($0) }
      case let array as [Any]: rest += array
      case let object as [String: Any]: rest += object.values
      default: break
      }
    }
    return found
  }

  @Test func `twenty thousand mutated bodies crash nothing and yield no address that is not in them`() throws {
    var generator = SeededGenerator(seed: testSeed)
    var accepted: [Reader: Int] = [:]
    for reader in Reader.allCases { #expect(reader.addresses(Array(reader.body.utf8))?.isEmpty == false) }
    for round in 0..<21_000 {
      let reader = Reader.allCases[round % Reader.allCases.count]
      let body = generator.mutated(Array(reader.body.utf8), with: EMASMutationTests.fragments, damages: 1...3)
      guard let yielded = reader.addresses(body), !yielded.isEmpty else { continue }
      accepted[reader, default: 0] += 1
      let strays = Set(yielded).subtracting(addresses(in: body))
      guard strays.isEmpty else {
        Issue.record("seed \(testSeed), \(reader): \(strays) from \(String(decoding: body, as: UTF8.self))")
        return
      }
    }
    // Were everything refused, the test would prove nothing.
    for reader in Reader.allCases { #expect((100..<3400).contains(accepted[reader, default: 0]), "\(accepted)") }
  }

  @Test func `five thousand mutated ciphertexts crash nothing`() {
    var generator = SeededGenerator(seed: testSeed)
    for aes in [Configuration.AESMode.cbc, .gcm] {
      let body = v2Body(#"{"dn":"a.example","v4":{"ips":["192.0.2.1"],"ttl":60}}"#, aes: aes)
      let dialect = emasV2Dialect(aes: aes)
      let expected = positive(a("a.example", 60, "192.0.2.1"))
      #expect(outcomes(batch(["a.example"]), json(body), dialect) == [expected])
      for _ in 0..<2_500 {
        let mutated = HTTPResponse(
          status: 200, body: generator.mutated(Array(body.utf8), with: EMASMutationTests.fragments, damages: 1...3))
        let result = outcomes(batch(["a.example"]), mutated, dialect)
        // Only GCM detects a changed text.
        if aes == .gcm, case .success = result[0] { #expect(result == [expected], "seed \(testSeed)") }
      }
    }
  }
}
