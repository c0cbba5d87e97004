// ProviderScripts.swift -- servers of a provider and plain resolvers that do what a test says.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage

@testable import Frontend
@testable import LocalDNS
@testable import Resolver
@testable import Upstreams

/// A server that carries transfers over HTTP.
final class ScriptedTransport: HTTPTransport, @unchecked Sendable {
  /// The result of a transfer and how long it takes; it gets how many were sent before.
  var script: (Int) -> (result: HTTPResult, latency: Duration)
  /// What happens to a question about a name; nil leaves that to `script`.
  var reply: ((String) -> (result: HTTPResult, latency: Duration)?)?
  private(set) var renewals = 0
  private(set) var sent: [(request: HTTPRequest, at: BootInstant, timeout: Duration)] = []
  private let loop: any Loop

  var silentAddresses: Set<String> = []
  var isConnected = false
  /// Called with the owner of each transfer that has begun.
  var whileInFlight: (((any TransferOwner)?) -> Void)?
  /// The transfers in flight.
  private let waiters: Waiters

  init(on loop: any Loop, _ script: @escaping (Int) -> (result: HTTPResult, latency: Duration)) {
    self.loop = loop
    self.script = script
    waiters = Waiters(on: loop)
  }

  func renewConnections() { renewals += 1 }

  nonisolated(nonsending) func send(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
  ) async -> HTTPResult {
    let step = reply?(request.queryName) ?? script(sent.count)
    sent.append((request, loop.now, timeout))
    let end = loop.now + min(step.latency, timeout)
    whileInFlight?(owner)
    await waiters.wait(atMost: end - loop.now) { true }
    guard loop.now >= end else { return .failure(HTTPFailure(.unreachable, "abandoned", wasSent: true)) }
    if step.latency <= timeout, case .response = step.result { heardAt = loop.now }
    return step.latency <= timeout ? step.result : .failure(HTTPFailure(.timeout, "the time was up", wasSent: true))
  }

  /// Why a handshake fails, and how long that takes; nil for success. It gets how many there were before.
  var handshakes: (Int) -> (failure: HTTPFailure?, latency: Duration) = { _ in (nil, .milliseconds(10)) }
  private(set) var shaken: [BootInstant] = []
  private(set) var losses = 0
  private(set) var heardAt = BootInstant(nanoseconds: .min)

  func abandon(_ failure: HTTPFailure) {
    losses += 1
    waiters.resumeAll()
  }

  nonisolated(nonsending) func handshake(timeout: Duration) async -> HTTPFailure? {
    let step = handshakes(shaken.count)
    shaken.append(loop.now)
    await loop.sleep(for: min(step.latency, timeout))
    guard step.latency <= timeout else { return HTTPFailure(.timeout, "no sign of life") }
    if step.failure == nil { heardAt = loop.now }
    return step.failure
  }
}

extension HTTPRequest {
  /// The name in a request of the JSON services.
  var queryName: String { target.firstMatch(of: /name=([^&]*)/).map { String($0.1) } ?? "" }
}

extension HTTPResult {
  /// A reply of the JSON services with one address of a name.
  static func address(_ text: String, of name: String = "www.example.com", ttl: Int = 300) -> HTTPResult {
    json(#"{"Status":0,"Answer":[{"name":"\#(name).","type":1,"TTL":\#(ttl),"data":"\#(text)"}]}"#)
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
  private(set) var asked: [(type: RecordType, at: BootInstant, servers: [PlainResolver])] = []
  private let loop: any Loop

  init(on loop: any Loop, _ script: @escaping (RecordType, Int) -> Step) {
    self.loop = loop
    self.script = script
  }

  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [PlainResolver], timeout: Duration,
    objection: @escaping (Message) -> String?
  ) async -> Result<LocalDNSAnswer, UnansweredQuestion> {
    let step = script(question.type, asked.filter { $0.type == question.type }.count)
    asked.append((question.type, loop.now, servers))
    await loop.sleep(for: min(step.latency, timeout))
    guard step.latency <= timeout, let addresses = step.addresses else {
      return .failure(UnansweredQuestion(reason: .timedOut))
    }
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
