// Distortion.swift -- what the owner of a zone, or a broken service, can do to an answer on purpose.

import DNSWire

/// What is wrong with an answer.
enum Distortion: Equatable, Sendable {
  /// It is about another name.
  case question
  /// Its address has three octets.
  case rdata
  /// It leads to a name that cannot be read.
  case name
  /// Its alias leads back.
  case loop
  /// It is a chain of `Distortion.links` aliases.
  case chain
  /// SERVFAIL, with that Extended DNS Error.
  case bogus(UInt16)

  /// The links of `chain`: more than `Zone.chainLimit` and any resolver's own limit.
  static let links = 40
  /// The name that `question` is about.
  static let wrongName = DomainName(text: "wrong-question.example.net.")!
}

extension ZoneAnswer {
  /// The answer with something wrong with it.
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
      // A pointer to behind the message; in text an empty label.
      answer.answer(with: [record(question.name, .cname, text: "a..example.", rdata: [0xFF, 0xFF])])
    case .loop:
      let other = Distortion.wrongName
      answer.answer(with: [alias(question.name, other), alias(other, question.name)])
    case .chain:
      var names = [question.name]
      for link in 1...Distortion.links { names.append(DomainName(text: "link-\(link).chain.example.")!) }
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
