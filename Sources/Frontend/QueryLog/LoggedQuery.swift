// LoggedQuery.swift -- one query as the query log and `httpdnsd tail` show it. All of it is personal data.

import DNSWire
import EventLoop
import FairShares
import Glibc
import Logging
import Routing
import Telemetry

/// An answered query.
package struct LoggedQuery {
  /// When it was received.
  var receivedAt: BootInstant
  /// How long its answer took.
  var took: Duration
  /// The client's address, 4 or 16 octets.
  var client: [UInt8]
  var transport: QueryTransport
  /// QNAME in wire form; empty if the query could not be read that far.
  var name: [UInt8]
  var type: UInt16
  var code: UInt16
  /// The counter of the rule that decided, as in `RouteFinding`.
  var rule = RouteFinding.noCounter
  /// The number of the client's token, as in `TokenLabels`; 0 for none.
  var token: UInt16 = 0
  var outcome: Fate
  /// Why it failed; nil if it did not, or if the response code says it all.
  var reason: String?

  /// How it was answered.
  package enum Fate: Equatable {
    /// It was answered at once.
    case atOnce(QueryFate)
    /// It was answered with stale data, after an attempt to ask an upstream.
    case stale
    /// It was answered by an upstream, or with an answer that was cached meanwhile.
    case asked(Source)
    /// No upstream had an answer.
    case failed
  }

  /// Where an answer to a query that had to wait came from.
  package enum Source: Equatable {
    /// A provider, by its name in the configuration.
    case provider(String)
    /// Another daemon of the fleet, by the provider that it asked.
    case fleet(String)
    /// A plain resolver.
    case localDNS
    /// The cache, which had the answer when the resolver looked.
    case cache
    /// The daemon itself.
    case ourselves
  }

  /// When the answer was sent.
  var answeredAt: BootInstant { receivedAt + took }

  /// The log line, with the time of the answer.
  ///
  /// - Parameters:
  ///   - rules: the names of the rules.
  ///   - tokens: the labels of the clients' tokens.
  func line(
    _ clock: LogClock = LogClock(), _ rules: RuleNames = RuleNames(), _ tokens: TokenLabels? = nil
  ) -> LogLine {
    var fields = [LogField("client", .text(clientText))]
    if let label = tokens?[token] { fields.append(LogField("token", .text(label))) }
    fields += [
      LogField("transport", .text(transport.word)),
      LogField("name", .text(nameText)),
      LogField("type", .text("\(RecordType(type))")),
      LogField("outcome", .text(outcome.text)),
    ]
    switch outcome {
    case .asked(.provider(let name)), .asked(.fleet(let name)): fields.append(LogField("provider", .text(name)))
    default: break
    }
    if let rule = rules[rule] { fields.append(LogField("rule", .text(rule))) }
    fields += [
      LogField("rcode", .text("\(ResponseCode(rawValue: code))")),
      LogField("ms", .number(TimeText.thousandths(took))),
    ]
    if let reason { fields.append(LogField("reason", .text(reason))) }
    return LogLine(time: clock.time(of: answeredAt), level: .info, message: "query", fields: fields)
  }

  /// QNAME; nil if the octets are not a domain name.
  var domainName: DomainName? {
    var position = 0
    while position < name.count, name[position] != 0, name[position] < 64 { position += Int(name[position]) + 1 }
    guard position == name.count - 1, name[position] == 0 else { return nil }
    return DomainName(unchecked: name)
  }

  /// QNAME in presentation format; `-` without a QNAME.
  var nameText: String { domainName?.text ?? "-" }

  /// The client's address as text.
  var clientText: String { IPAddress(octets: client).map { "\($0)" } ?? "" }
}

extension LoggedQuery {
  /// Converts a query from a listener thread's tap.
  init(_ query: TappedQuery, name: UnsafeBufferPointer<UInt8>) {
    receivedAt = BootInstant(nanoseconds: query.receivedAt)
    took = .nanoseconds(query.took)
    client = query.client.octets
    transport = query.transport
    self.name = Array(name)
    type = query.type
    code = query.code
    rule = query.rule
    token = query.token
    outcome = .atOnce(QueryFate(rawValue: Int(query.fate)) ?? .invalid)
  }
}

extension LoggedQuery.Fate {
  /// The word in the log.
  var text: String {
    switch self {
    case .atOnce(let fate): fate.word
    case .stale: "stale"
    case .asked(.provider): "provider"
    case .asked(.fleet): "fleet"
    case .asked(.localDNS): "localdns"
    case .asked(.cache): "hit"
    case .asked(.ourselves): "local"
    case .failed: "failure"
    }
  }
}
