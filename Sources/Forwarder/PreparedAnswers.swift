// PreparedAnswers.swift -- answers that need no upstream, composed at start: pinned, special and hosts-file names, HINFO.

import CLock
import DNSWire
import Routing

/// Composed local answers, found by their number. Immutable; shared by every thread.
final class PreparedAnswers: @unchecked Sendable {
  private struct Prepared {
    var head: ResponseHead
    var body: UnsafeMutablePointer<UInt8>
  }

  private let prepared: UnsafeMutablePointer<Prepared>
  private let count: Int
  /// The number of the answer to QTYPE ANY.
  let anyAnswer: UInt32

  /// A name of one label: records whose owner is the QNAME are composed against it and fit every QNAME.
  ///
  /// Another zone's name must be written in full: were it below this one, it would point into the QNAME.
  private static func placeholder(for soa: SOAOwner?) -> DomainName {
    let usual = DomainName(unchecked: [1, 0x78, 0])
    if case .zone(let zone) = soa, zone.isAtOrBelow(usual) { return DomainName(unchecked: [1, 0x79, 0]) }
    return usual
  }

  /// Composes the table's local answers.
  init(_ answers: [LocalAnswer]) {
    count = answers.count + 1
    prepared = .allocate(capacity: count)
    anyAnswer = UInt32(answers.count)
    for (index, answer) in (answers + [PreparedAnswers.hinfo]).enumerated() {
      (prepared + index).initialize(to: PreparedAnswers.prepare(answer))
    }
  }

  deinit {
    for index in 0..<count { prepared[index].body.deallocate() }
    prepared.deallocate()
  }

  /// Writes the body of answer `index` to `output` and fills `head`; with `capacity` too small, only `head`.
  @_noAllocation
  func copy(_ index: UInt32, to output: UnsafeMutablePointer<UInt8>, capacity: Int, _ head: inout ResponseHead) {
    let entry = prepared + Int(index)
    head = entry.pointee.head
    if head.bodyLength <= capacity { hot_copy(output, entry.pointee.body, head.bodyLength) }
  }

  /// RFC 8482 section 4.2: what answers a query of type ANY.
  private static let hinfo = LocalAnswer(
    responseCode: .noError,
    records: [LocalRecord(type: .hinfo, ttl: 3600, rdata: [7] + Array("RFC8482".utf8) + [0])],
    soaOwner: nil, isAuthoritative: false, extendedError: nil)

  private static func prepare(_ answer: LocalAnswer) -> Prepared {
    let response = ResolvedAnswer(answer, to: placeholder(for: answer.soaOwner)).response
    var head = ResponseHead(responseCode: response.responseCode.rawValue)
    head.isAuthoritative = answer.isAuthoritative
    head.answers = response.answers
    head.authorities = response.authorities
    head.bodyLength = response.body.count
    head.extendedError = answer.extendedError?.rawValue ?? ResponseHead.noExtendedError
    let body = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, response.body.count))
    response.body.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { body.update(from: base, count: source.count) }
    }
    return Prepared(head: head, body: body)
  }
}

/// The SOA record of negative answers that have none from upstream: stub resolvers that cache need one (RFC 2308 section 5).
enum SyntheticSOA {
  /// An SOA record of that owner, its minimum equal to its TTL.
  static func record(_ owner: DomainName, ttl: UInt32) -> ResourceRecord {
    var rdata = DomainName(text: "localhost.")!.octets + DomainName(text: "nobody.invalid.")!.octets
    for number in [1, 3600, 1200, 604_800, ttl] as [UInt32] {
      withUnsafeBytes(of: number.bigEndian) { rdata.append(contentsOf: $0) }
    }
    return ResourceRecord(owner: owner, type: .soa, ttl: ttl, rdata: rdata)
  }
}

extension ResolvedAnswer {
  /// A local answer to a question of that name.
  init(_ answer: LocalAnswer, to name: DomainName) {
    let records = answer.records.map { ResourceRecord(owner: name, type: $0.type, ttl: $0.ttl, rdata: $0.rdata) }
    let authorities = answer.soaOwner.map { owner in
      switch owner {
      case .queryName: [SyntheticSOA.record(name, ttl: LocalAnswer.ttl)]
      case .zone(let zone): [SyntheticSOA.record(zone, ttl: LocalAnswer.ttl)]
      }
    }
    self.init(
      response: ComposedResponse(answer.responseCode, to: name, answers: records, authorities: authorities ?? [])
        ?? ComposedResponse(.servFail),
      lifetime: 0, source: .ourselves)
  }
}
