// DoHFrontend.swift -- requests over HTTP, of both versions: from what a request asks to the query path, and back.

import DNSWire
import EventLoop
import FairShares
import Glibc
import HTTPMessage
import HTTPServer

/// Answers the requests of all DoH listeners. Loop thread only.
final class DoHFrontend: HTTP2Handler {
  var policy: EncryptedPolicy
  private let streams: StreamFrontend
  private let labels: TokenLabels
  private var unused: [DoHQuery] = []

  /// Objects that are kept for later queries.
  private static let mostUnused = 256

  init(_ policy: EncryptedPolicy, _ streams: StreamFrontend, _ labels: TokenLabels) {
    self.policy = policy
    self.streams = streams
    self.labels = labels
  }

  // MARK: - HTTP/2

  func requested(_ request: HTTP2Request, _ exchange: HTTP2Exchange) -> Int? {
    guard let connection = exchange.owner else { return nil }
    let head = DoHRequestHead(
      method: request.method, target: request.target, host: request.host, contentType: request.contentType,
      contentLength: request.contentLength ?? 0)
    do throws(DoHRefusal) {
      let (asked, token) = try read(head, of: connection)
      exchange.tag = Int(token)
      switch asked {
      case .message(let message):
        ask(message, of: connection, connection.client, token, .http2(exchange, exchange.number))
      case .json(let query):
        try askJSON(query, of: connection, connection.client, token, .http2(exchange, exchange.number))
      case .body: return DoHLimit.octets
      }
    } catch { exchange.refuse(error) }
    return nil
  }

  func received(_ body: UnsafeBufferPointer<UInt8>, _ exchange: HTTP2Exchange) {
    guard let connection = exchange.owner else { return }
    do throws(DoHRefusal) {
      try DoHRequest.check(body)
      ask(body, of: connection, connection.client, UInt16(exchange.tag), .http2(exchange, exchange.number))
    } catch { exchange.refuse(error) }
  }

  func refused(_ excess: HTTP2Excess, _ exchange: HTTP2Exchange) {
    switch excess {
    case .head: exchange.refuse(.headTooLarge)
    case .body: exchange.refuse(.tooLarge)
    }
  }

  // MARK: - HTTP/1.1

  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard let connection = reply.owner as? DoHConnection else { return reply.reset() }
    do throws(DoHRefusal) {
      let client = try client(of: request, connection)
      // The parts lie one behind the other, as over HTTP/2.
      var octets = Array((request.path + (request.query.map { "?\($0)" } ?? "")).utf8)
      let targetEnd = octets.count
      octets += Array(request.method.rawValue.utf8)
      let methodEnd = octets.count
      octets += Array((request.host ?? "").utf8)
      let hostEnd = octets.count
      octets += Array((request.field("Content-Type") ?? "").utf8)
      // The reader refuses chunks; without a length there is no body.
      let hasLength = request.field("Content-Length") != nil
      try octets.withUnsafeMutableBufferPointer { octets throws(DoHRefusal) in
        func part(_ range: Range<Int>) -> UnsafeMutableBufferPointer<UInt8> {
          UnsafeMutableBufferPointer(rebasing: octets[range])
        }
        let head = DoHRequestHead(
          method: UnsafeBufferPointer(part(targetEnd..<methodEnd)), target: part(0..<targetEnd),
          host: UnsafeBufferPointer(part(methodEnd..<hostEnd)),
          contentType: UnsafeBufferPointer(part(hostEnd..<octets.count)),
          contentLength: hasLength ? request.body.count : nil)
        let (asked, token) = try read(head, of: connection)
        switch asked {
        case .message(let message): ask(message, of: connection, client, token, .http1(reply))
        case .json(let query): try askJSON(query, of: connection, client, token, .http1(reply))
        case .body:
          try request.body.withUnsafeBufferPointer { body throws(DoHRefusal) in
            try DoHRequest.check(body)
            ask(body, of: connection, client, token, .http1(reply))
          }
        }
      }
    } catch { reply.refuse(error) }
  }

  /// Who asks: the client that a trusted proxy names, or else the other end of the connection.
  private func client(
    of request: HTTPServerRequest, _ connection: DoHConnection
  ) throws(DoHRefusal) -> SocketAddress {
    guard connection.isForwarder else { return connection.client }
    var client = connection.client
    if let value = request.fields.last(where: { $0.name.lowercased() == "x-forwarded-for" })?.value {
      guard let address = ForwardedClient.last(in: value.utf8).flatMap({ SocketAddress(octets: $0.octets, port: 0) })
      else {
        throw .noForwardedClient
      }
      client = address
    }
    guard withUnsafePointer(to: client.storage, { policy.tables.access.allows($0) }) else { throw .notAllowed }
    return client
  }

  // MARK: - Both

  /// What a request asks, and the number of its token.
  private func read(
    _ head: DoHRequestHead, of connection: DoHConnection
  ) throws(DoHRefusal) -> (DoHRequest, token: UInt16) {
    var token: UInt16 = 0
    let asked = try DoHRequest.read(head, to: connection.isTLS ? policy.site : policy.plainSite) { element in
      guard let tokens = policy.tokens else { return element.isEmpty }
      guard let entry = tokens.entry(pathElement: Array(element)) else { return false }
      token = labels.number(of: entry)
      return true
    }
    connection.mark = Int(token)
    return (asked, token)
  }

  private func ask(
    _ message: UnsafeBufferPointer<UInt8>, of connection: DoHConnection, _ client: SocketAddress, _ token: UInt16,
    _ exchange: DoHQuery.Exchange, isJSON: Bool = false
  ) {
    let query = unused.popLast() ?? DoHQuery(self)
    query.begin(client, token, exchange, isJSON: isJSON, isPadded: connection.isTLS)
    streams.accept(message, from: query, over: .doh)
  }

  private func askJSON(
    _ query: UnsafeBufferPointer<UInt8>, of connection: DoHConnection, _ client: SocketAddress, _ token: UInt16,
    _ exchange: DoHQuery.Exchange
  ) throws(DoHRefusal) {
    let message = try JSONQuestion(query).message
    message.withUnsafeBufferPointer { ask($0, of: connection, client, token, exchange, isJSON: true) }
  }

  fileprivate func reuse(_ query: DoHQuery) { if unused.count < DoHFrontend.mostUnused { unused.append(query) } }
}

/// A query over HTTP until its answer. Its frontend uses the object again.
private final class DoHQuery: StreamClient {
  /// The request to answer.
  enum Exchange {
    case none
    case http1(HTTPServerReply)
    /// With the number of the request: the object may have another one by the time of the answer.
    case http2(HTTP2Exchange, UInt64)
  }

  private(set) var client = SocketAddress(storage: sockaddr_storage(), length: 0)
  private(set) var token: UInt16 = 0
  private(set) var options = StreamOptions()
  private var exchange = Exchange.none
  private var isJSON = false
  private unowned let frontend: DoHFrontend

  init(_ frontend: DoHFrontend) { self.frontend = frontend }

  func begin(_ client: SocketAddress, _ token: UInt16, _ exchange: Exchange, isJSON: Bool, isPadded: Bool) {
    self.client = client
    self.token = token
    self.exchange = exchange
    self.isJSON = isJSON
    options = StreamOptions(keepalive: -1, isPadded: isPadded)
  }

  var isOpen: Bool {
    switch exchange {
    case .none: false
    case .http1(let reply): reply.isPending
    case .http2(let exchange, let number): exchange.number == number && exchange.isPending
    }
  }

  func send(_ response: UnsafeBufferPointer<UInt8>) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CacheControl.longest) { buffer in
      let length = CacheControl.write(for: response, into: buffer)
      let cacheControl = UnsafeBufferPointer(rebasing: UnsafeBufferPointer(buffer)[..<length])
      guard isJSON else { return answer(contentType: DoHMediaType.message, cacheControl, response) }
      Array(JSONAnswer.text(of: Array(response)).utf8).withUnsafeBufferPointer {
        answer(contentType: DoHMediaType.json, cacheControl, $0)
      }
    }
    end()
  }

  private func answer(
    contentType: StaticString, _ cacheControl: UnsafeBufferPointer<UInt8>, _ body: UnsafeBufferPointer<UInt8>
  ) {
    switch exchange {
    case .none: break
    case .http1(let reply):
      reply.send(
        status: 200,
        fields: [
          HTTPField("Content-Type", "\(contentType)"),
          HTTPField("Cache-Control", String(decoding: cacheControl, as: UTF8.self)),
        ], body: Array(body))
    case .http2(let exchange, let number):
      guard exchange.number == number else { return }
      exchange.answer(status: 200, contentType: contentType, cacheControl: cacheControl, body: body)
    }
  }

  /// The query path has no answer to what is no query.
  func discard() { refuse(.noMessage) }

  func refuseExcess() { refuse(.tooManyQueries) }

  private func refuse(_ refusal: DoHRefusal) {
    switch exchange {
    case .none: break
    case .http1(let reply): reply.refuse(refusal)
    case .http2(let exchange, let number): if exchange.number == number { exchange.refuse(refusal) }
    }
    end()
  }

  private func end() {
    exchange = .none
    frontend.reuse(self)
  }
}

extension HTTP2Exchange {
  /// The client's connection; nil when it has ended.
  fileprivate var owner: DoHConnection? { connection?.owner as? DoHConnection }

  fileprivate func refuse(_ refusal: DoHRefusal) {
    Array("\(refusal.text)\n".utf8).withUnsafeBufferPointer {
      answer(
        status: refusal.status, contentType: "text/plain; charset=utf-8",
        field: refusal.field.map { ($0.name.lowercased(), $0.value) }, body: $0)
    }
  }
}

extension HTTPServerReply {
  fileprivate func refuse(_ refusal: DoHRefusal) {
    let fields = refusal.field.map { [HTTPField($0.name, $0.value)] } ?? []
    send(status: refusal.status, fields: fields, body: Array("\(refusal.text)\n".utf8))
  }
}
