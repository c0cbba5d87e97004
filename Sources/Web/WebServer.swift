// WebServer.swift -- `web.address`: metrics for Prometheus, and whether the daemon lives and is ready. It only reads.
//
//   GET /metrics   all numbers, in Prometheus' text format
//   GET /healthz   200 as long as the loops turn
//   GET /readyz    200 as long as queries are taken, 503 while the daemon stops
//
// Resolver's loop only: that it answers shows that this loop turns.

import Configuration
import EventLoop
import Forwarder
import HTTPServer

/// What the web server tells. Called on the loop.
public struct WebSources {
  /// The program's version.
  public var version: String
  /// All numbers.
  package var statistics: () -> ForwarderStatistics
  /// The names of the threads that do not go round when they are asked to. Takes a while where there is one.
  public var standing: () async -> [String]
  /// Whether the daemon stops.
  public var isStopping: () -> Bool

  /// Those closures.
  package init(
    version: String, statistics: @escaping () -> ForwarderStatistics, standing: @escaping () async -> [String],
    isStopping: @escaping () -> Bool
  ) {
    self.version = version
    self.statistics = statistics
    self.standing = standing
    self.isStopping = isStopping
  }

  /// What a forwarder tells.
  package init(version: String, _ forwarder: Forwarder) {
    let statistics = forwarder.statistics
    self.init(
      version: version, statistics: { statistics.read() },
      standing: { [unowned forwarder] in await forwarder.standingThreads(within: WebServer.patience) },
      isStopping: { [unowned forwarder] in forwarder.isStopping })
  }
}

/// Serves until the end of its life.
public final class WebServer {
  /// A batch of queries takes microseconds: a listener thread that does not go round for so long stands. As long as
  /// `httpdnsd healthcheck` waits.
  public static let patience = Duration.seconds(2)
  /// The address that was bound, with the port that the kernel chose where it was 0.
  public let address: SocketAddress
  private let server: HTTPServer

  /// Told of each connection that could not be accepted, with the system's error number.
  public var onFailure: ((Int32) -> Void)? {
    get { server.onFailure }
    set { server.onFailure = newValue }
  }

  private static let limits = {
    var limits = HTTPServer.Limits()
    limits.headerOctets = 8192
    limits.bodyOctets = 1024
    limits.idle = .seconds(30)
    limits.connections = Configuration.httpConnections
    return limits
  }()

  /// A server that listens on a TCP address; port 0 lets the kernel choose one.
  ///
  /// - Throws: `HTTPServerError`.
  public init(on loop: EventLoop, _ address: SocketAddress, _ sources: WebSources) throws(HTTPServerError) {
    let handler = WebHandler(loop: loop, sources: sources, hosts: HostCheck(for: address))
    server = try HTTPServer(on: loop, limits: WebServer.limits) { handler.handle($0, $1) }
    self.address = try server.listen(on: address)
  }
}

/// Answers requests.
struct WebHandler {
  let loop: any Loop
  let sources: WebSources
  let hosts: HostCheck

  private static let text = "text/plain; charset=utf-8"

  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard hosts.admits(request.host) else {
      return answer(
        reply, 421,
        "the Host field is no name of this machine: ask by an address, as localhost or by the machine's name")
    }
    guard request.method == .get || request.method == .head else {
      return answer(reply, 405, "only GET and HEAD", [HTTPServerField("Allow", "GET, HEAD")])
    }
    switch request.path {
    case "/metrics":
      let page = MetricsPage(sources.statistics(), ProcessNumbers.now, version: sources.version)
      send(reply, 200, MetricsPage.contentType, page.octets)
    case "/healthz":
      answerHealth(reply)
    case "/readyz":
      let isStopping = sources.isStopping()
      answer(reply, isStopping ? 503 : 200, isStopping ? "stopping" : "ready")
    default: answer(reply, 404, "there are /metrics, /healthz and /readyz")
    }
  }

  /// Asks the listener threads. That this is done at all tells that the resolver's loop turns.
  private func answerHealth(_ reply: HTTPServerReply) {
    // Everything stays on the loop's thread: the task prefers it.
    nonisolated(unsafe) let (handler, reply) = (self, reply)
    Task(executorPreference: loop) {
      let standing = await handler.sources.standing()
      let line = standing.isEmpty ? "ok" : "\(standing.joined(separator: ", ")) stands still"
      handler.answer(reply, standing.isEmpty ? 200 : 503, line)
    }
  }

  private func answer(_ reply: HTTPServerReply, _ status: Int, _ line: String, _ fields: [HTTPServerField] = []) {
    send(reply, status, WebHandler.text, Array("\(line)\n".utf8), fields)
  }

  private func send(
    _ reply: HTTPServerReply, _ status: Int, _ contentType: String, _ body: [UInt8], _ fields: [HTTPServerField] = []
  ) {
    let common = [
      HTTPServerField("Content-Type", contentType), HTTPServerField("Cache-Control", "no-store"),
      HTTPServerField("X-Content-Type-Options", "nosniff"),
    ]
    reply.send(status: status, fields: common + fields, body: body)
  }
}
