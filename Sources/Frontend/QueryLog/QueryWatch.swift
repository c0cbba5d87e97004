// QueryWatch.swift -- passes answered queries as lines to one reader while it watches. Resolver's loop only.

import DNSWire
import EventLoop
import Logging
import Telemetry

/// Receives the queries that match, from `QueryLog.add` to `QueryLog.remove`.
package final class QueryWatch {
  /// The most lines for one reader in a tenth of a second; queries beyond that are counted.
  static let linesAtOnce = QueryLog.linesPerSecond / 10

  private let name: DomainName?
  private let onlyFailed: Bool
  private let asJSON: Bool
  private let receive: ([String]) -> Void

  /// - Parameters:
  ///   - name: only queries for this name and names below it; nil for all.
  ///   - onlyFailed: only queries whose RCODE is neither NOERROR nor NXDOMAIN.
  ///   - asJSON: the JSON objects of the query log instead of human-readable lines.
  ///   - receive: receives lines with their line breaks, in the order of the answers; several times a second at most.
  package init(of name: DomainName?, onlyFailed: Bool, asJSON: Bool, receive: @escaping ([String]) -> Void) {
    self.name = name?.lowercased
    self.onlyFailed = onlyFailed
    self.asJSON = asJSON
    self.receive = receive
  }

  /// Passes on the queries that match.
  ///
  /// - Parameter missing: queries that were left out before they got here.
  func take(
    _ queries: ArraySlice<LoggedQuery>, _ clock: LogClock, _ rules: RuleNames = RuleNames(),
    _ tokens: TokenLabels? = nil, missing: Int
  ) {
    var lines: [String] = []
    var leftOut = missing
    for query in queries where matches(query) {
      guard lines.count < QueryWatch.linesAtOnce else {
        leftOut += 1
        continue
      }
      lines.append(
        asJSON
          ? query.line(clock, rules, tokens).written(as: .json, isJournal: false)
          : "\(query.sentence(clock, rules, tokens))\n")
    }
    if leftOut > 0 { lines.append(note(of: leftOut)) }
    if !lines.isEmpty { receive(lines) }
  }

  private func matches(_ query: LoggedQuery) -> Bool {
    if onlyFailed, !query.hasFailed { return false }
    guard let name else { return true }
    return query.domainName?.lowercased.isAtOrBelow(name) ?? false
  }

  private func note(of leftOut: Int) -> String {
    guard asJSON else { return "(\(leftOut) queries are left out: too many at once)\n" }
    let fields = [LogField("queries", .number("\(leftOut)"))]
    let line = LogLine(time: .now, level: .warning, message: "left out", fields: fields)
    return line.written(as: .json, isJournal: false)
  }
}

extension LoggedQuery {
  /// Whether the response code is neither NOERROR nor NXDOMAIN.
  var hasFailed: Bool { ![.noError, .nxDomain].contains(ResponseCode(rawValue: code)) }

  /// One human-readable line: time, client, question and result.
  func sentence(_ clock: LogClock, _ rules: RuleNames = RuleNames(), _ tokens: TokenLabels? = nil) -> String {
    var source = outcome.text
    if case .asked(.provider(let name)) = outcome { source = name }
    let question = "\(nameText) \(RecordType(type))"
    let result = "\(ResponseCode(rawValue: code)) \(source) \(TimeText.thousandths(took)) ms"
    let client = clientText + (tokens?[token].map { " token=\($0)" } ?? "")
    return "\(clock.time(of: answeredAt).text) \(client) \(transport.word) \(question) \(result)"
      + (rules[rule].map { ", rule \($0)" } ?? "") + (reason.map { ": \($0)" } ?? "")
  }
}
