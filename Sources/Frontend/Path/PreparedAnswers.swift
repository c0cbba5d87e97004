// PreparedAnswers.swift -- answers that need no upstream, composed at start: pinned, special, hosts-file names, HINFO.

import CHotPath
import DNSWire
import Routing

/// Composed local answers, by number. Immutable; shared by every thread.
package final class PreparedAnswers: @unchecked Sendable {
  private struct Prepared {
    var head: ResponseHead
    var body: UnsafeMutablePointer<UInt8>
    /// Records of the additional section, behind those of the body's other sections.
    var additionals: UInt16
    /// The answer to other QTYPEs than `type`, or -1 for this one.
    var otherTypes: Int32
    var type: UInt16
  }

  private let prepared: UnsafeMutablePointer<Prepared>
  private let count: Int
  /// The number of the answer to QTYPE ANY.
  package let anyAnswer: UInt32

  /// Composes the table's local answers, and the answer to QTYPE ANY.
  package init(_ answers: [LocalAnswer]) {
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

  /// Writes the body of answer `index` to `output`, or as much as `capacity` allows, and fills `head`.
  ///
  /// - Parameter type: QTYPE.
  /// - Returns: the number of additional records at the end of the body, which `head` does not count.
  @_noAllocation
  func copy(
    _ index: UInt32, for type: UInt16, to output: UnsafeMutablePointer<UInt8>, capacity: Int,
    _ head: inout ResponseHead
  ) -> UInt16 {
    var entry = prepared + Int(index)
    if entry.pointee.otherTypes >= 0, entry.pointee.type != type { entry = prepared + Int(entry.pointee.otherTypes) }
    head = entry.pointee.head
    hot_copy(output, entry.pointee.body, head.bodyLength <= capacity ? head.bodyLength : capacity)
    return entry.pointee.additionals
  }

  /// The answer to a query of type ANY (RFC 8482 section 4.2).
  private static let hinfo = LocalAnswer(
    responseCode: .noError,
    records: [LocalRecord(type: .hinfo, ttl: 3600, rdata: [7] + Array("RFC8482".utf8) + [0])],
    soaOwner: nil, isAuthoritative: false, extendedError: nil)

  private static func prepare(_ answer: LocalAnswer) -> Prepared {
    let octets = body(of: answer)
    let longest = 65_535 - ResponseWriter.overhead
    var head = ResponseHead(responseCode: ResponseCode.servFail.rawValue)
    var additionals: UInt16 = 0
    if octets.count <= longest {
      additionals = UInt16(answer.additionals.count)
      head.responseCode = answer.responseCode.rawValue
      head.isAuthoritative = answer.isAuthoritative
      head.answers = UInt16(answer.records.count)
      head.authorities = answer.soaOwner == nil ? 0 : 1
      head.bodyLength = octets.count
    }
    head.extendedError = answer.extendedError?.rawValue ?? ResponseHead.noExtendedError
    let body = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, head.bodyLength))
    octets.withUnsafeBufferPointer { source in
      if let base = source.baseAddress { body.update(from: base, count: head.bodyLength) }
    }
    return Prepared(
      head: head, body: body, additionals: additionals, otherTypes: answer.otherTypes.map { Int32($0) } ?? -1,
      type: answer.records.first?.type.rawValue ?? 0)
  }

  /// The records in wire form, valid behind any question. Their offset depends on the length of QNAME, so QNAME is the
  /// only name that a compression pointer refers to; all others are written in full.
  private static func body(of answer: LocalAnswer) -> [UInt8] {
    let pointer: [UInt8] = [0xC0, UInt8(QueryReader.headerLength)]
    var octets: [UInt8] = []
    func append(owner: [UInt8], type: RecordType, ttl: UInt32, rdata: [UInt8]) {
      octets += owner
      for word in [
        type.rawValue, RecordClass.internet.rawValue, UInt16(ttl >> 16), UInt16(ttl & 0xFFFF),
        UInt16(truncatingIfNeeded: rdata.count),
      ] {
        octets += [UInt8(word >> 8), UInt8(word & 0xFF)]
      }
      octets += rdata
    }
    for record in answer.records { append(owner: pointer, type: record.type, ttl: record.ttl, rdata: record.rdata) }
    let owner: [UInt8]? = answer.soaOwner.map { owner in
      switch owner {
      case .queryName: pointer
      case .zone(let zone): zone.octets
      }
    }
    if let owner {
      let soa = SyntheticSOA.record(.root, ttl: LocalAnswer.ttl)
      append(owner: owner, type: soa.type, ttl: soa.ttl, rdata: soa.rdata)
    }
    for record in answer.additionals {
      append(owner: record.owner.octets, type: record.type, ttl: record.ttl, rdata: record.rdata)
    }
    return octets
  }
}
