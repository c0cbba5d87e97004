// EMASAnswers.swift -- gathers what a reply of EMAS says to each question of a batch.

import CJSON
import DNSWire

/// The answers to a batch while the elements of a reply are read one by one.
struct EMASAnswers {
  /// The TTL of addresses that came without a positive one, seconds: that of the provider's own programs.
  static let defaultTTL: UInt32 = 60

  /// What is known of one question so far.
  private struct Outcome {
    let question: HTTPDNSQuestion
    var records: [ResourceRecord] = []
    /// Whether the reply speaks of it at all.
    var isNamed = false
    /// Whether the reply says that the name has no addresses of the family, and not merely shows none.
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

  private var outcomes: [Outcome]

  /// No answers yet.
  init(_ batch: QuestionBatch) {
    outcomes = batch.questions.map { Outcome(question: $0) }
  }

  /// Adds the addresses of one family that the reply lists for a name; a list that cannot be read spoils that question
  /// only. Names and families that were not asked for are ignored.
  ///
  /// - Parameter hasNoData: whether the reply says that an empty list means what it says.
  mutating func add(
    _ list: EMASAddressList, of name: UnsafeRawBufferPointer, _ type: RecordType, hasNoData: Bool = false
  ) {
    for index in outcomes.indices {
      let question = outcomes[index].question
      guard question.type == type, isPlainText(name, of: question.name) else { continue }
      outcomes[index].isNamed = true
      outcomes[index].hasNoData = outcomes[index].hasNoData || hasNoData
      do throws(HTTPDNSFailure) {
        outcomes[index].records += try list.records(for: question)
      } catch {
        outcomes[index].failure = error
      }
    }
  }

  /// The answers in the order of the questions.
  ///
  /// - Throws: the first question's failure where there is no answer to any of them.
  func results() throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    let results = outcomes.map(\.result)
    guard case .failure(let failure)? = results.first else { return results }
    for case .success in results { return results }
    throw failure
  }
}

/// Addresses of one family as a reply lists them.
struct EMASAddressList {
  /// An array of texts; nil is an empty list.
  let addresses: JSONValue?
  /// TTLs, the one to prefer first; the first that is positive counts.
  let ttls: [JSONValue?]

  /// The records that the list stands for.
  ///
  /// - Throws: `.unreadable` for anything in it but addresses of the question's family, and for a TTL that is none.
  func records(for question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> [ResourceRecord] {
    guard let addresses else { return [] }
    guard addresses.isArray else { throw .unreadable(.shape) }
    let ttl = try self.ttl()
    var records: [ResourceRecord] = []
    for element in addresses.elements {
      guard element.isString else { throw .unreadable(.shape) }
      guard let octets = element.address(isIPv6: question.type == .aaaa) else { throw .unreadable(.rdata) }
      records.append(ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: octets))
    }
    return records
  }

  private func ttl() throws(HTTPDNSFailure) -> UInt32 {
    for case let member? in ttls {
      if let seconds = member.number(upTo: .max) {
        guard seconds == 0 else { return ttlValue(seconds) }
      } else {
        // What remains of a TTL may have become negative on the way.
        var seconds: Int64 = 0
        guard json_signed_of(member.handle, &seconds), seconds < 0 else { throw .unreadable(.number) }
      }
    }
    return EMASAnswers.defaultTTL
  }
}
