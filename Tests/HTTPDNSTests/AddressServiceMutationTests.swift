// AddressServiceMutationTests.swift -- broken replies of services that list addresses: no crash, no address out of nowhere.

import DNSWire
import Foundation
import HTTPMessage
import TestSupport
import Testing

@testable import HTTPDNS

@Suite struct AddressServiceMutationTests {
  /// Who reads a body.
  enum Reader: CaseIterable {
    case baidu, volcengine, volcengineList, jdcloud, ucloud

    /// A body that is accepted.
    var body: String {
      switch self {
      case .baidu:
        #"""
        {"msg":"ok","timestamp":1700000000,"data":{"a.example":{"ipv4":{"ip":["192.0.2.1","192.0.2.2"],"ttl":60,"msg":"ok"},
        "ipv6":{"ip":["2001:db8::1"],"ttl":"60"}},"b.example":{"ipv4":{"ip":[" 192.0.2.3"],"ttl":7},"ipv6":{"ip":[]}}}}
        """#
      case .volcengine:
        #"""
        {"cip":"203.0.113.9","host":"a.example","ips":["2001:db8::1","192.0.2.1","192.0.2.2"],"ttl":52,"weight":["70"]}
        """#
      case .volcengineList:
        #"""
        {"dns":[{"host":"a.example","ips":["192.0.2.1","2001:db8::1"],"ttl":"52"},{"host":"b.example","ips":["192.0.2.2"]}]}
        """#
      case .jdcloud:
        #"""
        {"ret_code":0,"msg":"Success","data":[{"domain":"a.example","ips":[" 192.0.2.1 "," 192.0.2.2"],"ttl":600},
        {"domain":"b.example","ips":["192.0.2.3"],"ttl":"60"}]}
        """#
      case .ucloud:
        #"""
        {"host":"a.example","client_ip":"203.0.113.9","ip_list":["192.0.2.1"," 192.0.2.2"],"ttl":600}
        """#
      }
    }

    var dialect: any Dialect {
      switch self {
      case .baidu: HTTPDNSTests.baidu
      case .volcengine, .volcengineList: HTTPDNSTests.volcengine
      case .jdcloud: HTTPDNSTests.jdcloud
      case .ucloud: HTTPDNSTests.ucloud
      }
    }

    /// What is asked: two names where a request may have several.
    var questions: [HTTPDNSQuestion] { batch?.questions ?? [question("a.example")] }

    private var batch: QuestionBatch? {
      (dialect as? any BatchDialect).map {
        HTTPDNSTests.batch(["a.example", "b.example"], $0.families == .one ? [.a] : [.a, .aaaa])
      }
    }

    /// What a reply says to each question.
    func outcomes(_ response: HTTPResponse) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
      if let batch, let dialect = dialect as? any BatchDialect {
        return HTTPDNSTests.outcomes(batch, response, dialect)
      }
      return questions.map { question in
        Result { () throws(HTTPDNSFailure) in try dialect.answer(to: question, from: response) }
      }
    }
  }

  static let fragments = [
    "{", "}", "[", "]", "\"", "\\", ":", ",", "null", "true", "-1", "0", "4294967296", "1e400", "\\u0000", "\u{0}",
    #""ip":["198.51.100.7"],"#, #""msg":"x","#, #""ttl":0"#, "a.example", "..", "198.51.100.9", "2001:db8::99",
    "\u{e9}",
    #""ips":["198.51.100.8"],"#, #""ret_code":1,"#, " ", #""ip_list":["198.51.100.6"],"#, #""code":"HOST_FORBIDDEN","#,
  ]

  /// Every address that a string of a JSON text is, by another parser than the one under test.
  private func addresses(in body: [UInt8]) -> Set<IPAddress> {
    var found: Set<IPAddress> = []
    var rest: [Any] = (try? JSONSerialization.jsonObject(with: Data(body))).map { [$0] } ?? []
    while let value = rest.popLast() {
      switch value {
      case let text as String:
        IPAddress(text: text.trimmingCharacters(in: .whitespacesAndNewlines)).map { _ = found.insert($0) }
      case let array as [Any]: rest += array
      case let object as [String: Any]: rest += object.values
      default: break
      }
    }
    return found
  }

  @Test(arguments: Reader.allCases)
  func `mutated bodies crash nothing and yield no address that is not in them`(reader: Reader) {
    var generator = SeededGenerator(seed: testSeed)
    let questions = reader.questions
    var accepted = 0
    #expect(reader.outcomes(json(reader.body)).contains { (try? $0.get())?.isNegative == false })
    for round in 0..<4_000 {
      let body = generator.mutated(Array(reader.body.utf8), with: AddressServiceMutationTests.fragments, damages: 1...3)
      let status = [200, 200, 200, 403][round % 4]
      let results = reader.outcomes(HTTPResponse(status: status, contentType: "application/json", body: body))
      #expect(results.count == questions.count)
      let records = results.compactMap { try? $0.get() }.flatMap(\.answers)
      accepted += records.isEmpty ? 0 : 1
      for (question, result) in zip(questions, results) {
        guard let answer = try? result.get() else { continue }
        #expect(answer.answers.allSatisfy { $0.owner == question.name && $0.type == question.type })
        #expect(answer.answers.allSatisfy { $0.ttl <= Int32.max } && answer.responseCode == .noError)
        #expect(answer.isNegative == answer.answers.isEmpty && answer.isEmptyAmbiguous == answer.isNegative)
      }
      let strays = Set(records.compactMap { IPAddress(octets: $0.rdata) }).subtracting(addresses(in: body))
      guard strays.isEmpty else {
        Issue.record("seed \(testSeed): \(strays) from \(String(decoding: body, as: UTF8.self))")
        return
      }
    }
    // Were everything refused, the test would prove nothing.
    #expect((100..<3_900).contains(accepted), "\(accepted)")
  }
}
