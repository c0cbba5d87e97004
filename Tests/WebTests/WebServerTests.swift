// WebServerTests.swift -- what is answered at `web.address`, and what is not.

import Ciphers
import EventLoop
import Frontend
import HTTPTestSupport
import MessageCache
import Synchronization
import TestSupport
import Testing

@testable import Configuration
@testable import Forwarder
@testable import Refresh
@testable import Resolver
@testable import Web

/// A web server on a loop of its own that reports what the test sets.
private final class Scene {
  let address: SocketAddress
  let standing = Mutex<[String]>([])
  let isStopping = Mutex<Bool>(false)
  private let loop: EventLoop
  private let shared = Shared()
  private let server: WebServer
  private let thread: LoopThread

  /// The batches that it took.
  let batches = Mutex<[ReportBatch]>([])

  init(_ statistics: ForwarderStatistics = .empty, token: String? = nil, outcome: ReportOutcome = .off) throws {
    loop = try EventLoop()
    server = try WebServer(
      on: loop, #require(SocketAddress(text: "127.0.0.1:0")),
      WebSources(
        version: "1.2.3", statistics: { statistics }, standing: { [shared] in shared.scene!.standing.withLock { $0 } },
        isStopping: { [shared] in shared.scene!.isStopping.withLock { $0 } },
        report: { [shared] batch in
          shared.scene!.batches.withLock { $0.append(batch) }
          return outcome
        }))
    server.follow(token: token)
    address = server.address
    thread = LoopThread(running: loop)
    shared.scene = self
  }

  deinit { thread.join() }

  func use(token: String?) {
    let isUsed = Mutex(false)
    loop.execute { [shared] in
      shared.scene!.server.follow(token: token)
      isUsed.withLock { $0 = true }
    }
    #expect(comes { isUsed.withLock { $0 } })
  }

  func get(_ target: String, method: String = "GET", header: String = "", body: String = "") throws -> RawResponse {
    let client = try #require(RawClient(to: address))
    return try #require(client.exchange(method, target, header: header, body: body))
  }

  private final class Shared: @unchecked Sendable {
    weak var scene: Scene?
  }
}

extension WebServer {
  /// As after a reload that changes the token alone; the dashboard stays off.
  fileprivate func follow(token: String?) {
    var settings = Configuration.Web()
    settings.reportToken = token.map { Secret($0) }
    follow(settings) { preconditionFailure("the dashboard is off") }
  }
}

extension ForwarderStatistics {
  /// Of a forwarder that has done nothing yet.
  static var empty: ForwarderStatistics {
    ForwarderStatistics(
      time: .now, startedAt: .now, queries: QueryTotals(), resolver: ResolverCounters(), questionsInFlight: 0,
      maxQuestionsInFlight: 1024, waitingClients: 0, refresh: RefreshCounters(), scheduledRefreshes: 0,
      cache: CacheStatistics(), unreadOctets: 0, droppedDatagrams: 0, tcpConnections: 0, refusedTCPConnections: 0,
      providers: [])
  }
}

@Suite struct `The web server` {
  @Test func `the web server serves the metrics in Prometheus' format`() throws {
    let response = try Scene().get("/metrics")
    #expect(response.status == 200)
    #expect(response.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
    #expect(response.field("Cache-Control") == "no-store")
    #expect(response.text.hasPrefix("# HELP httpdnsd_build_info "))
    #expect(response.text.contains("\nhttpdnsd_build_info{version=\"1.2.3\"} 1\n"))
    #expect(response.text.contains("\nprocess_cpu_seconds_total "))
    #expect(response.text.hasSuffix("\n"))
  }

  @Test func `the web server answers HEAD without a body`() throws {
    let response = try Scene().get("/metrics", method: "HEAD")
    #expect(response.status == 200)
    #expect(response.body.isEmpty)
  }

  @Test func `health fails if a thread is stuck, and names it`() throws {
    let scene = try Scene()
    #expect(try scene.get("/healthz").text == "ok\n")
    scene.standing.withLock { $0 = ["listener 1 of 127.0.0.1:53", "listener 2 of 127.0.0.1:53"] }
    let response = try scene.get("/healthz")
    #expect(response.status == 503)
    #expect(response.text == "listener 1 of 127.0.0.1:53, listener 2 of 127.0.0.1:53 is stuck\n")
  }

  @Test func `the daemon is ready until it stops`() throws {
    let scene = try Scene()
    #expect(try scene.get("/readyz").status == 200)
    scene.isStopping.withLock { $0 = true }
    #expect(try scene.get("/readyz").status == 503)
    #expect(try scene.get("/healthz").status == 200)
  }

  @Test(arguments: ["POST", "PUT", "DELETE"])
  func `the web server refuses methods other than GET and HEAD`(_ method: String) throws {
    let response = try Scene().get("/metrics", method: method)
    #expect(response.status == 405)
    #expect(response.field("Allow") == "GET, HEAD")
  }

  @Test(arguments: ["/", "/metrics/", "/flush", "/../metrics", "//metrics"])
  func `the web server has no other pages`(_ target: String) throws { #expect(try Scene().get(target).status == 404) }

  @Test func `the web server refuses a Host that is not this machine's`() throws {
    let scene = try Scene()
    let client = try #require(RawClient(to: scene.address))
    client.send("GET /metrics HTTP/1.1\r\nHost: attacker.example\r\n\r\n")
    #expect(client.response()?.status == 421)
    withExtendedLifetime(scene) {}
  }

  @Test func `the web server refuses an oversized header`() throws {
    let header = "X: \(String(repeating: "x", count: 9000))\r\n"
    #expect(try Scene().get("/metrics", header: header).status == 431)
  }
}

@Suite struct `Reports over the web` {
  private let token = "0123456789abcdef"
  private let body = #"{"reports":[{"name":"WWW.example.com","address":"192.0.2.1","result":"ok","ms":23}]}"#

  private func post(_ scene: Scene, header: String? = nil, _ body: String? = nil) throws -> RawResponse {
    try scene.get(
      "/report", method: "POST", header: header ?? "Authorization: Bearer \(token)\r\n", body: body ?? self.body)
  }

  @Test func `with the token they are taken`() throws {
    let scene = try Scene(token: token, outcome: .taken(counted: 1, unknown: 2))
    let response = try post(scene)
    #expect(response.status == 200 && response.text == "{\"counted\":1,\"unknown\":2}\n")
    let report = try #require(scene.batches.withLock { $0.first?.reports.first })
    #expect(report.name.text == "www.example.com." && report.address.description == "192.0.2.1")
    #expect(report.result == .works(milliseconds: 23))
  }

  @Test(arguments: ["", "Authorization: Bearer 0123456789abcdeX\r\n", "Authorization: Basic 0123456789abcdef\r\n"])
  func `without it, nothing is read`(header: String) throws {
    let scene = try Scene(token: token, outcome: .taken(counted: 1, unknown: 0))
    let response = try post(scene, header: header)
    #expect(response.status == 401 && response.field("WWW-Authenticate") == "Bearer")
    #expect(scene.batches.withLock { $0.isEmpty })
  }

  @Test func `another token replaces the first one at once, and without one there is no such path`() throws {
    let scene = try Scene(token: token, outcome: .taken(counted: 1, unknown: 0))
    scene.use(token: "fedcba9876543210")
    #expect(try post(scene).status == 401)
    #expect(try post(scene, header: "Authorization: Bearer fedcba9876543210\r\n").status == 200)
    scene.use(token: nil)
    #expect(try post(scene).status == 405)
  }

  @Test func `without a configured token there is no such path`() throws {
    let response = try post(try Scene(outcome: .taken(counted: 1, unknown: 0)))
    #expect(response.status == 405)
  }

  @Test(arguments: [(ReportOutcome.off, 403), (.tooMany, 429)]) func `a refusal has a status and a line`(
    outcome: ReportOutcome, status: Int
  ) throws {
    let response = try post(try Scene(token: token, outcome: outcome))
    #expect(response.status == status && response.text.hasSuffix("\n"))
  }

  @Test func `a body that is no batch, or too long, changes nothing`() throws {
    let scene = try Scene(token: token, outcome: .taken(counted: 1, unknown: 0))
    #expect(try post(scene, "x").status == 400)
    #expect(try post(scene, String(repeating: " ", count: 20_000)).status == 413)
    #expect(try scene.get("/report", header: "Authorization: Bearer \(token)\r\n").status == 405)
    #expect(scene.batches.withLock { $0.isEmpty })
  }
}
