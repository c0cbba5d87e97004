// Distortion.swift -- deliberate errors in an answer, as from a hostile zone or a broken service.

import DNSWire

/// What is wrong with an answer.
enum Distortion: Equatable, Sendable {
  /// It belongs to another name.
  case question
  /// Its address has three octets.
  case rdata
  /// Its CNAME record has a malformed target.
  case name
  /// Its CNAME records form a loop.
  case loop
  /// It is a chain of `Distortion.links` CNAME records.
  case chain
  /// SERVFAIL with that Extended DNS Error.
  case bogus(UInt16)

  /// The links of `chain`: more than `Zone.chainLimit` and than any resolver's limit.
  static let links = 40
  static let wrongName = DomainName(text: "wrong-question.example.net.")!
}

extension ZoneAnswer {
  /// Returns the answer with a deliberate error.
  func distorted(_ distortion: Distortion) -> ZoneAnswer {
    var answer = self
    switch distortion {
    case .question:
      answer.question.name = Distortion.wrongName
      for index in records.indices where records[index].owner == question.name {
        answer.records[index].owner = Distortion.wrongName
      }
    case .rdata: answer.answer(with: [record(question.name, .a, text: "192.0.2", rdata: [192, 0, 2])])
    case .name:
      // On the wire, a compression pointer beyond the message; in text, an empty label.
      answer.answer(with: [record(question.name, .cname, text: "a..example.", rdata: [0xFF, 0xFF])])
    case .loop:
      let other = Distortion.wrongName
      answer.answer(with: [alias(question.name, other), alias(other, question.name)])
    case .chain:
      var names = [question.name]
      for link in 1...Distortion.links {
        names.append(DomainName(text: "link-\(link).chain.example.")!)
      }
      var links = zip(names, names.dropFirst()).map { alias($0, $1) }
      links.append(record(names[Distortion.links], .a, text: "192.0.2.1", rdata: [192, 0, 2, 1]))
      answer.answer(with: links)
    case .bogus(let error):
      answer.answer(with: [])
      answer.code = .servFail
      answer.extendedError = error
    }
    return answer
  }

  private mutating func answer(with records: [ZoneRecord]) {
    code = .noError
    authority = []
    self.records = records
  }

  private func alias(_ owner: DomainName, _ target: DomainName) -> ZoneRecord {
    record(owner, .cname, text: target.text, rdata: target.octets)
  }

  private func record(_ owner: DomainName, _ type: RecordType, text: String, rdata: [UInt8]) -> ZoneRecord {
    ZoneRecord(owner: owner, type: type, ttl: 300, text: text, rdata: rdata)
  }
}
