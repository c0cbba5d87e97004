// EntryReport.swift -- what is kept of a name, in values that a person can be shown.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache

/// One entry of the cache.
package struct EntryReport: Sendable {
  /// Whom the entry is for, and what it answers.
  package var question: EntryQuestion
  /// Who is asked for such names, in order, for people.
  package var upstreams: [String]
  /// Who gave it, by name.
  package var source: String
  /// RCODE.
  package var responseCode: ResponseCode
  /// The answer section, with the TTLs that are left, in seconds.
  package var answers: [ResourceRecord]
  /// The authority section, with the TTLs that are left, in seconds.
  package var authorities: [ResourceRecord]
  /// How long ago it was stored.
  package var age: Duration
  /// How long it stays fresh; negative where it has expired.
  package var freshFor: Duration
  /// How long it may still be given, the time as stale data included; nil for as long as the program runs.
  package var usefulFor: Duration?
  /// How long ago it was last used or stored, to about a second.
  package var unusedFor: Duration
  /// Hits since it was stored.
  package var hits: UInt32
  /// When it is refreshed before it expires.
  package var refresh: RefreshPlan

  /// An entry in words; nil where it makes no sense.
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

/// What an entry answers.
package struct EntryQuestion: Hashable, Sendable {
  /// The name, in lower case; another one above it for a denial that covers more.
  package var name: DomainName
  /// The type; 0 for a denial, which holds for every type.
  package var type: RecordType
  /// The DO bit.
  package var dnssecOK: Bool
  /// The CD bit.
  package var checkingDisabled: Bool
  /// The route's number.
  package var route: UInt16
  /// The network that it belongs to; 0 where that does not matter.
  package var network: UInt32
  /// Whether that is the network that the machine is on, or none.
  package var isHere = true
  /// The client's subnet that it is for; nil for everybody.
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

/// Everything that is kept of a name.
package struct NameContent: Sendable {
  /// The entries.
  package var entries: [EntryReport] = []
  /// How many more there are.
  package var more = 0
  /// Remembered failures of the name.
  package var failures: [FailureReport] = []

  package init(entries: [EntryReport] = [], more: Int = 0, failures: [FailureReport] = []) {
    self.entries = entries
    self.more = more
    self.failures = failures
  }
}

/// A question that failed a moment ago.
package struct FailureReport: Sendable {
  /// What was asked.
  package var question: EntryQuestion
  /// How long it is not asked again.
  package var waits: Duration
}

/// When an entry is refreshed before it expires.
package enum RefreshPlan: Sendable, Equatable {
  /// Not before somebody asks for it after its end.
  case none
  /// Now: it has been asked for, or waits for others that travel with it.
  case inFlight
  /// In that time, whatever happens: a name of `refresh.keep`.
  case kept(in: Duration)
  /// In that time: it is in use.
  case hot(in: Duration)
  /// In that time, if it has so many more hits by then.
  case ifHit(times: UInt32, in: Duration)
}

/// What a report of a bad address has come to.
package struct BadAddressOutcome: Sendable, Equatable {
  /// Answers in which the address goes last from now on.
  package var moved = 0
  /// Answers in which it went last already.
  package var already = 0
  /// Answers that have no other address.
  package var alone = 0

  /// So many.
  package init(moved: Int = 0, already: Int = 0, alone: Int = 0) {
    self.moved = moved
    self.already = already
    self.alone = alone
  }
}
