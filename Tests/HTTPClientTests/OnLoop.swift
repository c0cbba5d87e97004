// OnLoop.swift -- runs the body of a test as a task on a real loop, for a bounded time.

import EventLoop
import Glibc
import HTTPClient
import HTTPMessage
import TLSTestSupport
import TestSupport
import Testing

/// What carries the transfers of a test over TLS.
enum Stack: CaseIterable {
  case streams
  case curl

  @TaskLocal static var current = Stack.streams
}

/// Runs each test of a suite once by each stack.
struct BothStacks: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    for stack in Stack.allCases { try await Stack.$current.withValue(stack) { try await function() } }
  }
}

extension Trait where Self == BothStacks {
  /// Runs each test once by each stack.
  static var onBothStacks: BothStacks { BothStacks() }
}

/// `async let` and task groups ask for it. A child task prefers the loop of its parent, so that none leaves the loop.
extension HTTPOrigin: @unchecked Sendable {}

/// Runs `body` with an origin on a fresh loop and closes the origin.
func withOrigin<Value: Sendable>(
  _ server: TestServer, scheme: HTTPServerAddress.Scheme = .http, name: String = "dns.test",
  addresses: [String] = ["127.0.0.1"], _ adjust: (inout HTTPClientOptions) -> Void = { _ in },
  body: @escaping (HTTPOrigin) async -> Value
) throws -> Value {
  try withOrigin(port: server.port, scheme: scheme, name: name, addresses: addresses, adjust, body: body)
}

/// The same for any port of loopback.
func withOrigin<Value: Sendable>(
  port: UInt16, scheme: HTTPServerAddress.Scheme = .http, name: String = "dns.test",
  addresses: [String] = ["127.0.0.1"], _ adjust: (inout HTTPClientOptions) -> Void = { _ in },
  body: @escaping (HTTPOrigin) async -> Value
) throws -> Value {
  let loop = try EventLoop()
  var options = HTTPClientOptions()
  options.carriesByCurl = Stack.current == .curl
  adjust(&options)
  let address = try #require(HTTPServerAddress(scheme: scheme, name: name, addresses: addresses, port: port))
  let origin = try HTTPOrigin(address, options: options, on: loop)
  var value: Value?
  loop.startTask {
    value = await body(origin)
    origin.close()
    loop.stop()
  }
  // A thousand requests under faults take a minute, and seven while a machine with two processors has sixteen other tasks.
  loop.schedule(after: .seconds(1_200)) { loop.stop() }
  loop.run()
  guard let value else { throw TestTookTooLong() }
  return value
}

/// Runs `body` with an origin whose server speaks HTTP/2; also says how many connections the server accepted.
///
/// - Parameter connections: how many are waited for: the server accepts one that `body` did not need only afterwards.
func withHTTP2<Value: Sendable>(
  peer: HTTP2Peer = HTTP2Peer(), awaiting connections: Int = 0, _ adjust: (inout HTTPClientOptions) -> Void = { _ in },
  react: @escaping @Sendable (ReceivedRequest) -> Reaction, body: @escaping (HTTPOrigin) async -> Value
) throws -> (Value, connections: Int) {
  let server = TestServer(tls: true, http2: true, peer: peer, react: react)
  defer { server.stop() }
  let file = TemporaryFile(Certificates.authority)
  let value = try withOrigin(server, scheme: .https) { options in
    options.caFile = file.path
    adjust(&options)
  } body: {
    await body($0)
  }
  _ = comes { server.accepted >= connections }
  return (value, server.accepted)
}

extension HTTPOrigin {
  /// Sends `count` requests at the same time and gives their results in no order.
  func burst(
    _ count: Int, _ request: HTTPRequest = HTTPRequest(target: "/"), for owner: TestOwner? = nil,
    timeout: Duration = .seconds(60)
  ) async -> [HTTPResult] {
    await withTaskGroup(of: HTTPResult.self) { group in
      for _ in 0..<count { group.addTask { await self.send(request, for: owner, timeout: timeout) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  /// Sends one request for the root.
  func get(_ target: String = "/", timeout: Duration = .seconds(60)) async -> HTTPResult {
    await send(HTTPRequest(target: target), timeout: timeout)
  }
}

/// A client's question that a transfer carries. On the loop only.
final class TestOwner: TransferOwner, @unchecked Sendable {
  let clientShare: UInt64
  let domainShare: UInt64
  /// What carries the question, in order.
  private(set) var transfers: [any CarriedTransfer] = []
  /// How many of these have ended.
  private(set) var ended = 0
  private(set) var connections = 0

  /// Whether its clients have been answered before it is sent.
  var isLate = false

  init(client: UInt64, domain: UInt64 = 1) { (clientShare, domainShare) = (client, domain) }

  /// The number of transfers that wait for a connection.
  var waits: Int { transfers.count { $0.isQueued } }

  func isCarried(by transfer: (any CarriedTransfer)?) {
    guard let transfer else { return ended += 1 }
    transfers.append(transfer)
    if isLate { transfer.isLate() }
  }
  func gotConnection() { connections += 1 }

  /// How often a request may be sent once more.
  var repeatsLeft = Int.max
  func mayRepeat() -> Bool {
    guard repeatsLeft > 0 else { return false }
    repeatsLeft -= 1
    return true
  }
}

extension HTTPResult {
  var response: HTTPResponse? {
    guard case .response(let response) = self else { return nil }
    return response
  }

  var failure: HTTPFailure? {
    guard case .failure(let failure) = self else { return nil }
    return failure
  }

  /// The content of the response, or the reason of the failure.
  var said: String {
    switch self {
    case .response(let response): response.text
    case .failure(let failure): failure.description
    }
  }
}

extension HTTPResponse {
  var text: String { String(decoding: body, as: UTF8.self) }
}

/// How many descriptors of this process are connected to a port of 127.0.0.1.
func connections(to port: UInt16) -> Int { connectedDescriptors(to: port).count }

/// Descriptors of this process that are connected to a port of 127.0.0.1.
func connectedDescriptors(to port: UInt16) -> [Int32] {
  (0..<4096).filter { descriptor in
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let known = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getpeername(descriptor, .init(__sockaddr__: $0), &length)
      }
    }
    return known == 0 && address.sin_family == sa_family_t(AF_INET) && UInt16(bigEndian: address.sin_port) == port
  }
}
