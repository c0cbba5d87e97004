// WebServerTests.swift -- what is answered at `web.address`, and what is not.

import EventLoop
import Forwarder
import Frontend
import HTTPTestSupport
import MessageCache
import Resolver
import Synchronization
import Testing

@testable import Web

/// A web server on a loop of its own that reports what the test sets.
private final class Scene {
  let address: SocketAddress
  let standing = Mutex<[String]>([])
  let isStopping = Mutex<Bool>(false)
  private let server: WebServer
  private let thread: LoopThread

  init(_ statistics: ForwarderStatistics = .empty) throws {
    let loop = try EventLoop()
    let shared = Shared()
    server = try WebServer(
      on: loop, #require(SocketAddress(text: "127.0.0.1:0")),
      WebSources(
        version: "1.2.3", statistics: { statistics }, standing: { shared.scene!.standing.withLock { $0 } },
        isStopping: { shared.scene!.isStopping.withLock { $0 } }))
    address = server.address
    thread = LoopThread(running: loop)
    shared.scene = self
  }

  deinit { thread.join() }

  func get(_ target: String, method: String = "GET", header: String = "") throws -> RawResponse {
    let client = try #require(RawClient(to: address))
    return try #require(client.exchange(method, target, header: header))
  }

  private final class Shared: @unchecked Sendable {
    weak var scene: Scene?
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
    #expect(try Scene().get("/metrics", header: header).status == 400)
  }
}
