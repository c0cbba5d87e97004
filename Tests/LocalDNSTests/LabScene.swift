// LabScene.swift -- a client before a laboratory of resolvers.

import DNSWire
import EventLoop
import LocalDNSTestSupport
import TestSupport

@testable import LocalDNS

/// A client on a virtual clock, and resolvers that a test gives their habits.
struct LabScene {
  typealias Result = Swift.Result<LocalDNSAnswer, UnansweredQuestion>

  let loop = SimulatedLoop()
  let laboratory: Laboratory
  let client: LocalDNSClient
  /// The resolvers in their order.
  var resolvers: [PlainResolver] = []

  init(_ servers: LabServer...) {
    laboratory = Laboratory(on: loop)
    client = LocalDNSClient(over: laboratory)
    resolvers = servers.indices.map { PlainResolver(SocketAddress(text: "192.0.2.\($0 + 1):53")!) }
    for (place, server) in servers.enumerated() { set(place, server) }
  }

  init(_ kind: LabKind) {
    self.init()
    resolvers = kind.setUp(in: laboratory)
  }

  /// Gives a resolver another habit.
  func set(_ place: Int, _ server: LabServer) { laboratory.servers[resolvers[place].address] = server }

  /// The queries that a resolver got.
  func queries(_ place: Int) -> [LabQuery] { laboratory.queries[resolvers[place].address] ?? [] }

  /// The result of a question, and how long it took.
  @discardableResult
  func ask(
    _ question: Question, dnssecOK: Bool = false, timeout: Duration = .milliseconds(4400)
  ) -> (result: Result, after: Duration) {
    let begin = loop.now
    let result = loop.run { [client, resolvers] in
      await client.ask(question, dnssecOK: dnssecOK, checkingDisabled: false, servers: resolvers, timeout: timeout)
    }
    return (result, loop.now - begin)
  }

  /// Begins to ask for addresses, and does not wait.
  func begin(_ name: String) {
    let question = Question(name: DomainName(text: name)!, type: .a)
    loop.startTask { [client, resolvers] in
      _ = await client.ask(
        question, dnssecOK: false, checkingDisabled: false, servers: resolvers, timeout: .milliseconds(700))
    }
  }

  /// The place of the resolver that answered, and how long it took.
  @discardableResult
  func ask(
    _ name: String, _ type: RecordType = .a, timeout: Duration = .milliseconds(4400)
  ) -> (place: Int?, after: Duration) {
    let (result, time) = ask(Question(name: DomainName(text: name)!, type: type), timeout: timeout)
    return ((try? result.get()).flatMap { resolvers.firstIndex(of: $0.server) }, time)
  }
}

extension LabScene.Result {
  var answer: LocalDNSAnswer? { try? get() }
  var code: ResponseCode? { answer?.message.responseCode }
  var addresses: [[UInt8]]? { answer?.message.answers.filter { $0.type == .a || $0.type == .aaaa }.map(\.rdata) }
  var failure: UnansweredQuestion? { if case .failure(let failure) = self { failure } else { nil } }
}

extension LabServer {
  /// Answers every question for addresses with one.
  static func address(_ last: UInt8, latency: Duration = .milliseconds(10)) -> LabServer {
    LabServer(latency: latency) { query in
      var response = query.response()
      let octets: [UInt8] =
        query.question.type == .aaaa ? [UInt8](repeating: 0, count: 15) + [last] : [192, 0, 2, last]
      response.answers = [
        ResourceRecord(owner: query.question.name, type: query.question.type, ttl: 300, rdata: octets)
      ]
      return [.reply(response)]
    }
  }

  /// Knows no name.
  static let denying = LabZone().server

  static let silent = LabServer { _ in [] }

  static func code(_ code: ResponseCode) -> LabServer { LabServer { [.reply($0.response(code))] } }
}
