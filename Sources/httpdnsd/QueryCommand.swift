// QueryCommand.swift -- `httpdnsd query`: asks as the daemon would and shows who answered.

import ArgumentParser
import Configuration
import DNSWire
import EventLoop
import Forwarder
import Glibc
import Resolver
import Routing
import Telemetry
import Upstreams

/// Asks one question by the rules, providers and LocalDNS of a configuration; no daemon needs to run.
struct QueryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "query",
    abstract: "Ask as the daemon would: shows the route and why, who answered, how long it took, and the records.",
    discussion: """
      Past the cache; a provider that charges is paid. What a rule or a special name says is answered by httpdnsd itself. \
      A line "after" stands for each one that was asked before and did not answer, or denied the name. With an address \
      and PTR it asks for the address's name.

      Example: httpdnsd query www.example.com AAAA
      Example: httpdnsd query 192.0.2.1 PTR

      Exit code 0: there is an answer, also one that says that there is no such name or record; 1: there is none \
      (SERVFAIL), or a mistake in the configuration; 64: a mistake on the command line, or a provider or type that does \
      not exist.
      """)

  @OptionGroup var options: ConfigurationOption

  @Option(
    help: ArgumentHelp("Ask this provider only, past the rules.", valueName: "name"), completion: .configuredProviders)
  var provider: String?

  /// What a shell completes.
  static let usualTypes = ["A", "AAAA", "CAA", "CNAME", "HTTPS", "MX", "NS", "PTR", "SOA", "SRV", "SVCB", "TXT"]

  @Argument(help: "The domain name.")
  var name: String

  @Argument(
    help: "The record type: a mnemonic, TYPE65 or a number.", completion: .list(QueryCommand.usualTypes))
  var type = "A"

  func validate() throws { _ = try question() }

  func run() throws {
    let question = try question()
    let loaded = try LoadedConfiguration(path: options.config)
    let forwarder = try Console.forwarder(loaded)
    let start = BootInstant.now
    guard let answer = try ask(forwarder, question, loaded) else { throw ExitCode.failure }
    show(answer, to: question, took: BootInstant.now - start, way: provider == nil ? forwarder.way(of: question) : nil)
    if answer.failure != nil { throw ExitCode.failure }
  }

  /// The name and the type, in either order.
  private func question() throws -> Question {
    let isTypeFirst = QueryCommand.recordType(type) == nil && QueryCommand.recordType(name) != nil
    let (owner, word) = isTypeFirst ? (type, name) : (name, type)
    guard let type = QueryCommand.recordType(word) else {
      throw ValidationError("'\(word)' is not a record type that can be asked for, such as A, AAAA, TXT or TYPE65")
    }
    if type == .ptr, let address = IPAddress(text: owner) { return Question(name: address.reverseName, type: type) }
    return Question(name: try DomainName(argument: owner), type: type)
  }

  /// The type of a text, where it can be asked for.
  private static func recordType(_ text: String) -> RecordType? {
    RecordType(text: text).flatMap { type in
      type.rawValue == 0 || (128...255).contains(type.rawValue) || type == .opt ? nil : type
    }
  }

  private func ask(
    _ forwarder: Forwarder, _ question: Question, _ loaded: LoadedConfiguration
  ) throws -> ResolvedAnswer? {
    guard let provider else { return forwarder.ask(question) }
    let names = loaded.configuration.providers.map(\.name)
    guard names.contains(provider) else {
      Console.error("httpdnsd: there is no provider '\(provider)', but \(names.joined(separator: ", "))")
      throw ExitCode.validationFailure
    }
    guard let answer = forwarder.ask(question, of: provider) else {
      Console.error("httpdnsd: provider '\(provider)' cannot serve type \(question.type)")
      throw ExitCode.validationFailure
    }
    return answer
  }

  private func show(_ answer: ResolvedAnswer, to question: Question, took: Duration, way: String?) {
    print("question     \(question.name) \(question.type)")
    if let way { print("route        \(way)") }
    let isNobody = answer.failure != nil && answer.source == .ourselves
    print("answered by  \(isNobody ? "nobody" : describe(answer.source))")
    for step in answer.trail { print("after        \(step)") }
    print("took         \(TimeText.tenths(took)) ms")
    print("status       \(answer.response.responseCode)")
    let reason = answer.failure ?? answer.response.extendedError.map { text($0, of: question) }
    if let reason { print("reason       \(reason)") }
    guard let message = answer.response.message(to: question) else { return }
    for record in message.answers + message.authorities {
      print("\(record.owner)\t\(record.ttl)\tIN\t\(record.type)\t\(RDATA.text(record.rdata, type: record.type))")
    }
  }

  private func text(_ error: ExtendedError, of question: Question) -> String {
    switch error {
    case .notSupported: "no provider serves type \(question.type)"
    case .blocked: "blocked by a rule"
    case .filtered: "its addresses are private (names.rebind_protection)"
    default: "extended error \(error.rawValue) (RFC 8914)"
    }
  }

  private func describe(_ source: AnswerSource) -> String {
    switch source {
    case .provider(let name, let server): server.isEmpty ? name : "\(name) (\(server))"
    case .localDNS: "LocalDNS"
    case .cache: "the cache"
    case .ourselves: "httpdnsd itself"
    }
  }
}
