// QueryCommand.swift -- `httpdnsd query`: resolves a name as the daemon would, and shows which upstream answered.

import ArgumentParser
import Configuration
import Control
import DNSWire
import EventLoop
import Forwarder
import Glibc
import Resolver
import Routing
import Telemetry
import Upstreams

/// Asks one question by the rules, providers and LocalDNS of a configuration. Needs no running daemon.
struct QueryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "query",
    abstract: "Resolve a name as the daemon would: show the route, the upstreams that were asked, and the records.",
    discussion: """
      Bypasses the cache and asks the upstreams; providers charge for it. An answer from a rule, a special name or the \
      hosts file is shown as answered by httpdnsd itself. "after" lines show the upstreams that were asked before, in \
      order, with the reason why their answer was not used and with advice; if no upstream has an answer, "asked" \
      lines show all of them. Name and type may be in either order. For an address, it asks for the name (PTR); for a \
      URL, it asks for the host.

      Example: httpdnsd query www.example.com AAAA
      Example: httpdnsd query 192.0.2.1
      Example: httpdnsd query --provider alidns https://www.example.com/

      Exit code 0: there is an answer, even if it says that the name or record does not exist; 1: no upstream has an \
      answer (SERVFAIL), or the configuration has a mistake; 64: a mistake on the command line, or an unknown provider \
      or type.
      """)

  @OptionGroup var options: ConfigurationOption

  @Option(
    help: ArgumentHelp("Ask only this provider, regardless of the rules.", valueName: "name"),
    completion: .configuredProviders)
  var provider: String?

  @Option(
    help: ArgumentHelp(
      "Let the rules decide as for a query from this address; without it, rules with clients do not count.",
      valueName: "address"))
  var client: String?

  /// The types that shell completion offers.
  static let usualTypes = ["A", "AAAA", "CAA", "CNAME", "HTTPS", "MX", "NS", "PTR", "SOA", "SRV", "SVCB", "TXT"]

  @Argument(help: "The domain name, an address or a URL.") var name: String

  @Argument(
    help: "The record type: a mnemonic, TYPE65 or a number. (default: A; PTR for an address)",
    completion: .list(QueryCommand.usualTypes))
  var type: String?

  func validate() throws {
    _ = try question()
    if let client, address == nil { throw ValidationError("'\(client)' is not an address") }
    if client != nil, provider != nil {
      throw ValidationError("--provider asks regardless of the rules: --client has no effect")
    }
  }

  func run() throws {
    let (question, note) = try question()
    if let note { Console.error("httpdnsd: \(note)") }
    let loaded = try LoadedConfiguration(path: options.config)
    let forwarder = try Console.forwarder(loaded)
    let start = BootInstant.now
    guard let answer = try ask(forwarder, question, loaded) else { throw ExitCode.failure }
    let took = BootInstant.now - start
    show(
      answer, to: question, took: took, way: provider == nil ? forwarder.way(of: question, from: address) : nil,
      notes: provider == nil ? forwarder.absentLists : [],
      hasTable: loaded.configuration.providers.contains { if case .table = $0.kind { true } else { false } })
    if answer.failure != nil { throw ExitCode.failure }
  }

  /// The client; an IPv4-mapped IPv6 address as the IPv4 one, as the daemon sees it.
  private var address: IPAddress? { client.flatMap { IPAddress(text: $0) }?.unmapped }

  /// The question, and a note if it was made from a URL or a host with a port or a path.
  private func question() throws -> (question: Question, note: String?) {
    let (owner, word) = ownerAndType()
    var type = RecordType.a
    if let word {
      guard let asked = QueryCommand.recordType(word) else {
        throw ValidationError("'\(word)' is not a record type that can be asked for, such as A, AAAA, TXT or TYPE65")
      }
      type = asked
    }
    let url = URLArgument(owner)
    let host = url?.host ?? owner
    let note = url.map { "\($0.kind): asking for its host, \(host)" }
    if let address = IPAddress(text: host) {
      return (Question(name: address.reverseName, type: word == nil ? .ptr : type), note)
    }
    return (Question(name: try DomainName(argument: host), type: type), note)
  }

  /// The arguments may be in either order.
  private func ownerAndType() -> (owner: String, type: String?) {
    guard let type else { return (name, nil) }
    let isTypeFirst = QueryCommand.recordType(type) == nil && QueryCommand.recordType(name) != nil
    return isTypeFirst ? (type, name) : (name, type)
  }

  /// The type that a text names; nil if it cannot be asked for.
  private static func recordType(_ text: String) -> RecordType? {
    RecordType(text: text).flatMap { $0.isDataType ? $0 : nil }
  }

  private func ask(
    _ forwarder: Forwarder, _ question: Question, _ loaded: LoadedConfiguration
  ) throws -> ResolvedAnswer? {
    guard let provider else { return forwarder.ask(question, from: address) }
    let names = loaded.configuration.providers.map(\.name)
    guard names.contains(provider) else {
      Console.error("httpdnsd: unknown provider '\(provider)'; configured: \(names.joined(separator: ", "))")
      throw ExitCode.validationFailure
    }
    guard let answer = forwarder.ask(question, of: provider) else {
      Console.error("httpdnsd: provider '\(provider)' cannot serve type \(question.type)")
      throw ExitCode.validationFailure
    }
    return answer
  }

  private func show(
    _ answer: ResolvedAnswer, to question: Question, took: Duration, way: String?, notes: [String], hasTable: Bool
  ) {
    print("question     \(question.name) \(question.type)")
    if let way { print("route        \(way)") }
    let reason = reason(answer, question, hasTable: hasTable)
    func hasReason(_ step: TrailStep) -> Bool { step.reason == reason }
    if answer.failure == nil || answer.source.hasReplied {
      print("answered by  \(describe(answer.source))")
      // The last step may be this answer.
      for step in answer.trail where !hasReason(step) { print("after        \(step)") }
    } else {
      for step in answer.trail { print("asked        \(step)") }
    }
    print("took         \(TimeText.tenths(took)) ms")
    print("status       \(answer.response.responseCode)")
    let isSaid = !answer.source.hasReplied && answer.trail.contains(where: hasReason)
    if let reason, !isSaid { print("reason       \(reason)") }
    if answer.trail.contains(where: { $0.absence == .notLoaded })
      || !answer.source.hasReplied && answer.trail.contains(where: { $0.absence == .switchedOff })
    {
      print("note         a running daemon may still use an earlier table")
    }
    for note in notes { print("note         \(note)") }
    guard let message = answer.response.message(to: question) else { return }
    for record in message.answers + message.authorities {
      print("\(record.owner)\t\(record.ttl)\tIN\t\(record.type)\t\(RDATA.text(record.rdata, type: record.type))")
    }
  }

  /// Why there is no answer, or why it has no records.
  private func reason(_ answer: ResolvedAnswer, _ question: Question, hasTable: Bool) -> String? {
    if let failure = answer.failure { return failure }
    if answer.isAmbiguous {
      guard case .provider(let name, _) = answer.source else { return UpstreamTraits.usualAmbiguity }
      return answer.trail.first { $0.upstream == name }?.reason ?? UpstreamTraits.usualAmbiguity
    }
    let isOurs = !answer.source.hasReplied && !answer.trail.isEmpty
    if isOurs, answer.trail.allSatisfy({ $0.absence == .switchedOff }) { return "the table is switched off" }
    return answer.response.extendedError.map { text($0, of: question, hasTable: hasTable) }
  }

  private func text(_ error: ExtendedError, of question: Question, hasTable: Bool) -> String {
    switch error {
    case .notSupported where hasTable && (question.type == .a || question.type == .aaaa):
      "no provider has the name in its table"
    case .notSupported: "no provider serves type \(question.type)"
    case .blocked: "blocked by a rule"
    case .filtered: "its addresses are private (names.rebind_protection)"
    default: "extended error \(error.rawValue) (RFC 8914)"
    }
  }

  private func describe(_ source: AnswerSource) -> String {
    switch source {
    case .provider(let name, let server): server.isEmpty ? name : "\(name) (\(server))"
    case .fleet(let name): "\(name), by another daemon of the fleet"
    case .localDNS(let server): "LocalDNS (\(server))"
    case .cache: "the cache"
    case .ourselves: "httpdnsd itself"
    }
  }
}

extension AnswerSource {
  /// Whether a server has replied to the question, even if only with an RCODE.
  fileprivate var hasReplied: Bool {
    switch self {
    case .provider(_, let server): !server.isEmpty
    case .fleet, .localDNS, .cache: true
    case .ourselves: false
    }
  }
}
