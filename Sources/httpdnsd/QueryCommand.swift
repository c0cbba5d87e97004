// QueryCommand.swift -- `httpdnsd query`: asks as the daemon would and shows who answered.

import ArgumentParser
import DNSWire
import EventLoop
import Forwarder
import Glibc

/// Asks one question by the rules, providers and LocalDNS of a configuration; no daemon needs to run.
struct QueryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "query",
    abstract: "Ask as the daemon would: shows who answered, how long it took, and the records.",
    discussion: "Example: httpdnsd query --config Config/demo.toml www.example.com AAAA")

  @OptionGroup var options: ConfigurationOption

  @Argument(help: "The domain name.")
  var name: String

  @Argument(help: "The record type: a mnemonic, TYPE65 or a number.")
  var type = "A"

  func run() throws {
    guard let name = DomainName(text: name) else { throw ValidationError("'\(name)' is not a domain name") }
    guard let type = RecordType(text: type), type.rawValue != 0, !(128...255).contains(type.rawValue), type != .opt
    else {
      throw ValidationError("'\(type)' is not a record type that can be asked for, such as A, AAAA, TXT or TYPE65")
    }
    let loaded = try LoadedConfiguration(path: options.config)
    Process.prepare(loaded.configuration)
    let forwarder: Forwarder
    do throws(StartError) {
      forwarder = try Forwarder(loaded.configuration, logger: loaded.logger)
    } catch {
      if case .other(let text) = error { Console.error("httpdnsd: \(text)") }
      throw ExitCode.failure
    }
    let question = Question(name: name, type: type)
    let start = BootInstant.now
    guard let answer = forwarder.ask(question) else { throw ExitCode.failure }
    show(answer, to: question, took: BootInstant.now - start)
    if answer.failure != nil { throw ExitCode.failure }
  }

  private func show(_ answer: ResolvedAnswer, to question: Question, took: Duration) {
    let tenths = took.nanoseconds / 100_000
    print("question     \(question.name) \(question.type)")
    print("answered by  \(describe(answer.source))")
    print("took         \(tenths / 10).\(tenths % 10) ms")
    print("status       \(answer.response.responseCode)")
    if let failure = answer.failure { print("reason       \(failure)") }
    guard let message = answer.response.message(to: question) else { return }
    for record in message.answers + message.authorities {
      print("\(record.owner)\t\(record.ttl)\tIN\t\(record.type)\t\(RDATA.text(record.rdata, type: record.type))")
    }
  }

  private func describe(_ source: AnswerSource) -> String {
    switch source {
    case .provider(let name, let server): "\(name) (\(server))"
    case .localDNS: "LocalDNS"
    case .cache: "the cache"
    case .ourselves: "httpdnsd itself"
    }
  }
}
