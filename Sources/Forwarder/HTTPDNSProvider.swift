// HTTPDNSProvider.swift -- one provider of the configuration: its dialect, its servers, which of them is asked now.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import ProviderPool

/// Which client subnet a provider is told (RFC 7871).
enum SubnetPolicy: Sendable, Equatable {
  case none
  case fixed(IPPrefix)
  case fromClient

  /// The subnet to send for a client's own one; nil to send none.
  func subnet(for client: IPPrefix?) -> IPPrefix? {
    switch self {
    case .none: nil
    case .fixed(let prefix): prefix
    case .fromClient: client
    }
  }
}

/// A provider that is asked over HTTP.
final class HTTPDNSProvider: Upstream {
  let name: String
  let trustsAD: Bool
  let timeout: Duration
  private let dialect: any Dialect
  private let subnetPolicy: SubnetPolicy
  private let servers: [ProviderServer]
  private var rotation: ServerRotation
  private let loop: any Loop
  private var headers: [HTTPField] = []

  /// Servers that one question is sent to, one after the other.
  private static let mostAttempts = 3
  /// With less time than this no transfer is worth its price.
  private static let shortestAttempt = Duration.milliseconds(100)

  init(
    name: String, dialect: any Dialect, servers: [ProviderServer], attemptsBeforeSwitch: Int, timeout: Duration,
    subnetPolicy: SubnetPolicy, trustsAD: Bool, loop: any Loop
  ) {
    self.name = name
    self.dialect = dialect
    self.servers = servers
    self.timeout = timeout
    self.subnetPolicy = subnetPolicy
    self.trustsAD = trustsAD
    self.loop = loop
    rotation = ServerRotation(count: servers.count, attemptsBeforeSwitch: attemptsBeforeSwitch)
  }

  func subnet(for client: IPPrefix?) -> IPPrefix? { subnetPolicy.subnet(for: client) }

  func serves(_ question: HTTPDNSQuestion) -> Bool { dialect.serves(question) }

  func ask(_ question: HTTPDNSQuestion, deadline: BootInstant) async -> Result<UpstreamAnswer, UpstreamFailure> {
    var failure = UpstreamFailure(.noReachableAuthority, "no time left")
    for index in rotation.order.prefix(HTTPDNSProvider.mostAttempts) {
      let time = min(timeout, deadline - loop.now)
      guard time >= HTTPDNSProvider.shortestAttempt else { break }
      let server = servers[index]
      switch await ask(server, question, timeout: time) {
      case .success(let answer):
        rotation.succeeded(index)
        return .success(UpstreamAnswer(answer, server: server.description))
      case .failure(let problem):
        failure = problem.failure
        failure.reason = "\(server): \(failure.reason)"
        guard problem.isServersFault else { return .failure(failure) }
        // A server that had less than its time has not failed; another one may still be quicker.
        if time == timeout || !problem.isLateness { _ = rotation.failed(index) }
      }
    }
    return .failure(failure)
  }

  private struct Problem: Error {
    var failure: UpstreamFailure
    var isServersFault: Bool
    var isLateness = false
  }

  private func ask(
    _ server: ProviderServer, _ question: HTTPDNSQuestion, timeout: Duration
  ) async -> Result<HTTPDNSAnswer, Problem> {
    let end = loop.now + timeout
    guard let transport = await server.transport(timeout: timeout) else {
      let failure = UpstreamFailure(.noReachableAuthority, "its name could not be resolved")
      return .failure(Problem(failure: failure, isServersFault: true))
    }
    let left = end - loop.now
    guard left >= HTTPDNSProvider.shortestAttempt else {
      let failure = UpstreamFailure(.noReachableAuthority, "its name was resolved too late")
      return .failure(Problem(failure: failure, isServersFault: true, isLateness: true))
    }
    let request = dialect.request(for: question, unixTime: loop.wallTime)
    switch await transport.send(HTTPRequest(request, headers: fields(request)), timeout: left) {
    case .failure(let reason):
      return .failure(
        Problem(
          failure: UpstreamFailure(reason), isServersFault: reason.kind != .busy, isLateness: reason.kind == .timeout))
    case .response(let response):
      do throws(HTTPDNSFailure) {
        return .success(try dialect.answer(to: question, from: TransferResponse(response)))
      } catch {
        return .failure(Problem(failure: UpstreamFailure(error), isServersFault: error.blame == .server))
      }
    }
  }

  /// The header fields of a dialect rarely change: the client recognises the same array and prepares nothing anew.
  private func fields(_ request: TransferRequest) -> [HTTPField] {
    let isSame =
      headers.count == request.headers.count
      && zip(headers, request.headers).allSatisfy { $0.name == $1.name && $0.value == $1.value }
    if !isSame { headers = request.headers.map { HTTPField($0.name, $0.value) } }
    return headers
  }
}

extension HTTPRequest {
  init(_ request: TransferRequest, headers: [HTTPField]) {
    self.init(
      method: request.method == .get ? .get : .post, target: request.target, headers: headers, body: request.body)
  }
}

extension TransferResponse {
  init(_ response: HTTPResponse) {
    self.init(
      status: response.status, contentType: response.contentType.isEmpty ? nil : response.contentType,
      age: response.age.map { UInt32(clamping: $0) }, maxAge: response.maxAge.map { UInt32(clamping: $0) },
      retryAfter: response.retryAfter.map { .seconds($0) }, body: response.body)
  }
}

extension UpstreamFailure {
  init(_ failure: HTTPFailure) {
    switch failure.kind {
    case .tooLarge, .badHTTP: self.init(.invalidData, failure.description)
    case .busy:
      self.init(.other, failure.description)
      isOverload = true
    case .cancelled, .badRequest, .internal: self.init(.other, failure.description)
    default: self.init(.networkError, failure.description)
    }
  }

  init(_ failure: HTTPDNSFailure) {
    switch failure {
    case .unreadable, .wrongQuestion, .truncated: self.init(.invalidData, failure.description)
    case .unsupported, .name: self.init(.notSupported, failure.description)
    case .server: self.init(.noReachableAuthority, failure.description)
    case .authentication, .expired, .account, .badParameter, .badPath, .quota: self.init(.other, failure.description)
    }
  }
}
