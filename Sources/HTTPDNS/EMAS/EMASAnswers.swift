// EMASAnswers.swift -- collects the answers to a batch from a reply of EMAS.

import DNSWire
import JSON

/// Collects the answers to a batch while the reader visits the elements of a reply.
struct EMASAnswers {
  /// The TTL in seconds of addresses without a positive TTL, as in the provider's own SDKs.
  static let defaultTTL: UInt32 = 60

  /// The state of one question.
  private struct QuestionResult {
    let question: HTTPDNSQuestion
    var records: [ResourceRecord] = []
    /// Whether the reply mentions the question.
    var isNamed = false
    /// Whether the reply states that the name has no addresses of the family, instead of only listing none.
    var hasNoData = false
    var failure: HTTPDNSFailure?

    var result: Result<HTTPDNSAnswer, HTTPDNSFailure> {
      if let failure { return .failure(failure) }
      guard isNamed else { return .failure(.wrongQuestion) }
      return Result { () throws(HTTPDNSFailure) in
        var answer = try ProviderReply(responseCode: .noError, answers: records).answer(to: question)
        answer.isEmptyAmbiguous = answer.isNegative && !hasNoData
        return answer
      }
    }
  }

  private var questions: [QuestionResult]
  private let isOfOneName: Bool

  init(_ batch: QuestionBatch) {
    questions = batch.questions.map { QuestionResult(question: $0) }
    isOfOneName = batch.names.count == 1
  }

  /// Adds the addresses of one family that the reply lists for a name. A list that cannot be read fails this question
  /// only. Names and families that are not in the batch are ignored. Without a name it is the only one of the batch.
  ///
  /// - Parameter hasNoData: whether the reply states that an empty list means NODATA.
  mutating func add(
    _ list: EMASAddressList, of name: UnsafeRawBufferPointer?, _ type: RecordType, hasNoData: Bool = false
  ) {
    for index in questions.indices {
      let question = questions[index].question
      guard question.type == type, name.map({ isPlainText($0, of: question.name) }) ?? isOfOneName else { continue }
      questions[index].isNamed = true
      questions[index].hasNoData = questions[index].hasNoData || hasNoData
      do throws(HTTPDNSFailure) {
        questions[index].records += try list.records(for: question)
      } catch {
        questions[index].failure = error
      }
    }
  }

  /// The answers in the order of the questions.
  ///
  /// - Throws: the failure of the first question if no question has an answer.
  func results() throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    let results = questions.map(\.result)
    guard case .failure(let failure)? = results.first else { return results }
    for case .success in results { return results }
    throw failure
  }
}

/// The addresses of one family as a reply lists them.
struct EMASAddressList {
  /// An array of strings; nil is an empty list.
  let addresses: JSONValue?
  /// TTLs in order of preference; the first positive one counts.
  let ttls: [JSONValue?]

  /// The records of the list. An element that is no address of the question's family is left out.
  ///
  /// - Throws: `.unreadable` if there is no list, no element of it is such an address, or a TTL is no number.
  func records(for question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> [ResourceRecord] {
    guard let addresses else { return [] }
    guard addresses.isArray else { throw .unreadable(.shape("ips")) }
    let ttl = try self.ttl()
    var records: [ResourceRecord] = []
    for element in addresses.elements {
      guard let octets = element.address(isIPv6: question.type == .aaaa) else { continue }
      records.append(ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: octets))
    }
    guard !records.isEmpty || addresses.count == 0 else { throw .unreadable(.rdata) }
    return records
  }

  private func ttl() throws(HTTPDNSFailure) -> UInt32 {
    for case let member? in ttls {
      if let ttl = try member.ttl, ttl > 0 { return ttl }
    }
    return EMASAnswers.defaultTTL
  }
}
