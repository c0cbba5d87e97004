// ProviderScripts.swift -- servers of a provider and plain resolvers that do what a test says.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import LocalDNS

@testable import Forwarder
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A server that carries transfers over HTTP.
final class ScriptedTransport: HTTPTransport, @unchecked Sendable {
  /// The result of a transfer and how long it takes; it gets how many were sent before.
  var script: (Int) -> (result: HTTPResult, latency: Duration)
  private(set) var renewals = 0
  private(set) var sent: [(request: HTTPRequest, at: BootInstant, timeout: Duration)] = []
  private let loop: any Loop

  init(on loop: any Loop, _ script: @escaping (Int) -> (result: HTTPResult, latency: Duration)) {
    self.loop = loop
    self.script = script
  }

  func renewConnections() { renewals += 1 }

  nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult {
    let step = script(sent.count)
    sent.append((request, loop.now, timeout))
    await loop.sleep(for: min(step.latency, timeout))
    return step.latency <= timeout ? step.result : .failure(HTTPFailure(.timeout, "the time was up"))
  }
}

extension HTTPResult {
  /// A reply of the JSON services with one address of `www.example.com`.
  static func address(_ text: String) -> HTTPResult {
    json(#"{"Status":0,"Answer":[{"name":"www.example.com.","type":1,"TTL":300,"data":"\#(text)"}]}"#)
  }

  /// A JSON reply.
  static func json(_ text: String) -> HTTPResult {
    .response(HTTPResponse(status: 200, contentType: "application/dns-json", body: Array(text.utf8)))
  }

  /// A reply of that status, without anything else.
  static func status(_ status: Int) -> HTTPResult { .response(HTTPResponse(status: status)) }

  /// A connection that is refused.
  static let refused = HTTPResult.failure(HTTPFailure(.refused, "refused"))
}

/// Plain resolvers.
final class ScriptedPlainDNS: LocalDNSTransport, @unchecked Sendable {
  typealias Step = (addresses: [String]?, ttl: UInt32, latency: Duration)

  /// The addresses of a type, nil for a failure; it gets how often the type was asked for before.
  var script: (RecordType, Int) -> Step
  private(set) var asked: [(type: RecordType, at: BootInstant, servers: [SocketAddress])] = []
  private let loop: any Loop

  init(on loop: any Loop, _ script: @escaping (RecordType, Int) -> Step) {
    self.loop = loop
    self.script = script
  }

  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [SocketAddress], timeout: Duration
  ) async -> Result<LocalDNSAnswer, LocalDNSFailure> {
    let step = script(question.type, asked.filter { $0.type == question.type }.count)
    asked.append((question.type, loop.now, servers))
    await loop.sleep(for: min(step.latency, timeout))
    guard step.latency <= timeout, let addresses = step.addresses else { return .failure(.timedOut) }
    var header = Header()
    header.qr = true
    let message = Message(
      id: 1, header: header, questions: [Message.Entry(question)],
      answers: addresses.map {
        ResourceRecord(owner: question.name, type: question.type, ttl: step.ttl, rdata: IPAddress(text: $0)!.octets)
      })
    return .success(LocalDNSAnswer(message: message, server: servers[0]))
  }
}
