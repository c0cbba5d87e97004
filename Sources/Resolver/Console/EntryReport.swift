// EntryReport.swift -- the cached answers and failures of a name, as values for output.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Ranking
import Refresh

/// One entry of the cache.
package struct EntryReport: Sendable {
  /// The question that the entry answers, and for which clients.
  package var question: EntryQuestion
  /// The names of the upstreams for the question, in order.
  package var upstreams: [String]
  /// The name of the source that gave the answer.
  package var source: String
  /// RCODE.
  package var responseCode: ResponseCode
  /// The answer section; its TTLs are the seconds that are left.
  package var answers: [ResourceRecord]
  /// The authority section; its TTLs are the seconds that are left.
  package var authorities: [ResourceRecord]
  /// How long ago it was stored.
  package var age: Duration
  /// How long it stays fresh; negative if it has expired.
  package var freshFor: Duration
  /// How long it may still be served, including the time as stale data; nil if that does not end while the daemon runs.
  package var usefulFor: Duration?
  /// How long ago it was last used or stored, to about a second.
  package var unusedFor: Duration
  /// Hits since it was stored.
  package var hits: UInt32
  /// When it is refreshed.
  package var refresh: RefreshPlan
  /// What ranking knows of its addresses; empty if it knows nothing.
  package var addresses: [AddressFigures] = []

  /// Decodes an entry, without upstreams, source and refresh plan; nil if it is malformed.
  init?(_ copy: EntryCopy, _ parts: KeyParts, now: Int64) {
    guard
      let message = Message.assembled(
        parts.name, type: RecordType(parts.scope.type), answers: copy.answers, authorities: copy.authorities,
        responseCode: copy.responseCode, body: copy.body)
    else { return nil }
    let elapsed = UInt32(clamping: (now - copy.storedAt) / 1_000_000_000)
    func older(_ record: ResourceRecord) -> ResourceRecord {
      var record = record
      record.ttl -= min(record.ttl, elapsed)
      return record
    }
    question = EntryQuestion(parts)
    upstreams = []
    source = ""
    responseCode = copy.responseCode
    answers = message.answers.map(older)
    authorities = message.authorities.map(older)
    age = .nanoseconds(now - copy.storedAt)
    freshFor = .nanoseconds(copy.expiresAt - now)
    usefulFor = copy.usefulUntil == .max ? nil : .nanoseconds(copy.usefulUntil - now)
    unusedFor = .nanoseconds(max(0, now - copy.usedAt))
    hits = copy.hits
    refresh = .none
  }
}

/// The question that an entry answers.
package struct EntryQuestion: Hashable, Sendable {
  /// The name, in lower case; for NXDOMAIN it may be a name above the one that was looked up.
  package var name: DomainName
  /// The type; 0 for NXDOMAIN, which is valid for every type.
  package var type: RecordType
  /// The DO bit.
  package var dnssecOK: Bool
  /// The CD bit.
  package var checkingDisabled: Bool
  /// The route's number.
  package var route: UInt16
  /// The number of the network that it belongs to; 0 if it is valid on every network.
  package var network: UInt32
  /// Whether it is valid on the network that the machine is on.
  package var isHere = true
  /// The client subnet that it is valid for; nil for all clients.
  package var subnet: IPPrefix?

  init(_ parts: KeyParts) {
    name = parts.name
    type = RecordType(parts.scope.type)
    dnssecOK = parts.scope.dnssecOK
    checkingDisabled = parts.scope.checkingDisabled
    route = parts.scope.route
    network = parts.scope.network
    subnet = parts.subnet.prefix
  }
}

/// Everything that is cached about a name.
package struct NameContent: Sendable {
  package var entries: [EntryReport] = []
  /// The number of entries that are not listed.
  package var more = 0
  /// The cached failures of the name.
  package var failures: [FailureReport] = []
}

/// A question that failed recently (RFC 9520).
package struct FailureReport: Sendable {
  /// The question, and for which clients.
  package var question: EntryQuestion
  /// The time until it may be asked again.
  package var waits: Duration
  /// Why it failed, human-readable.
  package var reason: String
}
