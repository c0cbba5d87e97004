// AddressLists.swift -- collects the addresses that a reply lists for the names of a batch.
//
// For services that have nothing but addresses, and do not say why a name has none: that is an empty answer which may mean
// anything (`isEmptyAmbiguous`).

import DNSWire
import JSON

/// The addresses that a reply lists, while its reader visits one list after the other.
struct AddressLists {
  /// What the reply says to one question.
  private struct Found {
    let question: HTTPDNSQuestion
    var records: [ResourceRecord] = []
    var failure: HTTPDNSFailure?

    var result: Result<HTTPDNSAnswer, HTTPDNSFailure> {
      if let failure, records.isEmpty { return .failure(failure) }
      return Result { () throws(HTTPDNSFailure) in
        var answer = try ProviderReply(responseCode: .noError, answers: records).answer(to: question)
        answer.isEmptyAmbiguous = answer.isNegative
        return answer
      }
    }
  }

  private var questions: [Found]
  private let isOfOneName: Bool
  /// The service's word for a list of addresses.
  private let member: String
  /// Whether the reply has a name of the batch, another one, and something that is no list of a name.
  private var (hasOurs, hasOthers, hasSenseless) = (false, false, false)

  /// - Parameter member: the service's word for a list of addresses.
  init(_ batch: QuestionBatch, member: String) {
    questions = batch.questions.map { Found(question: $0) }
    isOfOneName = batch.names.count == 1
    self.member = member
  }

  /// Adds an element that should have a list and the name that it belongs to. One with neither, or whose name is no text, is
  /// senseless.
  ///
  /// - Parameter name: nil means the only name of the batch.
  mutating func add(
    _ list: JSONValue?, of name: JSONValue?, family: RecordType? = nil, ttl: JSONValue?, standardTTL: UInt32? = nil
  ) {
    let octets = name?.octets
    guard octets != nil || name == nil && list != nil else {
      hasSenseless = true
      return
    }
    add(list, ofName: octets, family: family, ttl: ttl, standardTTL: standardTTL)
  }

  /// Adds the list of a name. Addresses of both families may be mixed; white space around them and texts that are no addresses
  /// do not count. A list of such texts alone is unreadable, and so is one of addresses without a TTL, unless another list has
  /// addresses.
  ///
  /// - Parameters:
  ///   - list: an array of strings; nil is an empty one.
  ///   - name: nil means the only name of the batch.
  ///   - family: the family whose question fails with the list; nil if the list is for both.
  ///   - ttl: a number or a text.
  ///   - standardTTL: the TTL in seconds where the reply has none; nil if each list needs one.
  mutating func add(
    _ list: JSONValue?, ofName name: UnsafeRawBufferPointer?, family: RecordType? = nil, ttl: JSONValue?,
    standardTTL: UInt32? = nil
  ) {
    let places = questions.indices.filter { index in
      name.map { isPlainText($0, of: questions[index].question.name) } ?? isOfOneName
    }
    guard !places.isEmpty else {
      hasOthers = true
      return
    }
    hasOurs = true
    do throws(HTTPDNSFailure) {
      try read(list, ttl, standardTTL, into: places)
    } catch {
      for index in places where questions[index].question.type == family ?? questions[index].question.type {
        questions[index].failure = error
      }
    }
  }

  private mutating func read(
    _ list: JSONValue?, _ ttl: JSONValue?, _ standardTTL: UInt32?, into places: [Int]
  ) throws(HTTPDNSFailure) {
    guard let list else { return }
    guard list.isArray else { throw .unreadable(.shape(member)) }
    var addresses: [[UInt8]] = []
    for element in list.elements {
      if let address = element.address { addresses.append(address) }
    }
    guard !addresses.isEmpty else {
      guard list.count == 0 else { throw .unreadable(.rdata) }
      return
    }
    guard let ttl = try ttl?.ttl ?? standardTTL else { throw .unreadable(.shape("ttl")) }
    for address in addresses {
      let type: RecordType = address.count == 4 ? .a : .aaaa
      for index in places where questions[index].question.type == type {
        questions[index].records.append(
          ResourceRecord(owner: questions[index].question.name, type: type, ttl: ttl, rdata: address))
      }
    }
  }

  /// The answers in the order of the questions. A name that the reply does not have is empty.
  ///
  /// - Throws: `.wrongQuestion` if it has other names alone, `.unreadable` if it has nothing but what is senseless, and the
  ///   failure of the first question if each has one.
  func results() throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    guard hasOurs || !hasOthers else { throw .wrongQuestion }
    guard hasOurs || !hasSenseless else { throw .unreadable(.shape(member)) }
    let results = questions.map(\.result)
    guard case .failure(let failure)? = results.first else { return results }
    for case .success in results { return results }
    throw failure
  }
}

extension JSONValue {
  /// The octets of the address in a string, four or sixteen, without white space around it; nil for any other value.
  fileprivate var address: [UInt8]? {
    guard let octets else { return nil }
    let isIPv6 = octets.contains(UInt8(ascii: ":"))
    // Most texts are an address and nothing else.
    guard let first = octets.first, let last = octets.last, isWhiteSpace(first) || isWhiteSpace(last) else {
      return address(isIPv6: isIPv6)
    }
    return addressOctets(trimmed(Array(octets)[...]), isIPv6: isIPv6)
  }
}
