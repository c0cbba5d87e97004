// NotListedNames.swift -- remembers the names that a provider does not list.

import DNSWire
import EventLoop
import HTTPDNS

/// Questions that a provider does not seem to list: recently it answered them with an ambiguous empty answer, or refused them.
struct NotListedNames {
  private struct Key: Hashable {
    let name: DomainName
    let type: RecordType
  }

  private var until: [Key: BootInstant] = [:]
  /// Bounds memory: at this size, expired entries are dropped, or all entries if none has expired.
  private static let most = 10_000

  func contains(_ question: HTTPDNSQuestion, now: BootInstant) -> Bool {
    guard !until.isEmpty, let end = until[Key(name: question.name, type: question.type)] else { return false }
    return now < end
  }

  mutating func insert(_ question: HTTPDNSQuestion, until end: BootInstant, now: BootInstant) {
    if until.count >= NotListedNames.most {
      until = until.filter { now < $0.value }
      if until.count >= NotListedNames.most { until = [:] }
    }
    until[Key(name: question.name, type: question.type)] = end
  }

  /// Forgets a question that has an answer now.
  mutating func remove(_ question: HTTPDNSQuestion) {
    guard !until.isEmpty else { return }
    until[Key(name: question.name, type: question.type)] = nil
  }

  /// Forgets the entries of these names.
  ///
  /// - Returns: the number of forgotten names and types.
  mutating func remove(_ names: NameSelection) -> Int {
    let before = until.count
    until = until.filter { !names.contains($0.key.name) }
    return before - until.count
  }
}
