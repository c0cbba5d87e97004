// WebServer.swift -- serves metrics for Prometheus and the health of the daemon on `web.address`.
//
//   GET /metrics   all metrics in Prometheus' text format
//   GET /healthz   200 while all loops turn
//   GET /readyz    200 while the daemon accepts queries, 503 while it stops
//   POST /report   takes what programs say about addresses, with the token of `web.report_token_file`
//   /dashboard…    the page of `web.dashboard`, by `Dashboard`
//
// Resolver's loop only, so that any reply proves that this loop turns.

import Ciphers
import Configuration
import Dashboard
import EventLoop
import Forwarder
import HTTPMessage
import HTTPServer
import Resolver

/// What the web server reports. The closures are called on the loop and must stay valid for the life of the server.
public struct WebSources {
  /// The version of the daemon.
  public var version: String
  /// Returns all statistics.
  package var statistics: () -> ForwarderStatistics
  /// Returns the names of the threads that do not respond. It takes up to `WebServer.patience` if there are any.
  public var standing: () async -> [String]
  /// Returns whether the daemon is stopping.
  public var isStopping: () -> Bool
  /// Takes reports of programs about addresses.
  package var report: (ReportBatch) -> ReportOutcome = { _ in .off }
}

extension WebSources {
  package init(version: String, _ forwarder: Forwarder) {
    let statistics = forwarder.statistics
    self.init(
      version: version, statistics: { statistics.read() },
      standing: { [weak forwarder] in await forwarder?.standingThreads(within: WebServer.patience) ?? [] },
      isStopping: { [weak forwarder] in forwarder?.isStopping ?? true },
      report: { [weak forwarder] batch in forwarder?.resolver.assumeIsolated { $0.take(batch) } ?? .off })
  }
}

/// The web server. It listens until it is released.
public final class WebServer {
  /// How long a listener thread may take to respond before it counts as stuck; a batch of queries takes microseconds.
  /// `httpdnsd healthcheck` waits for the same time.
  public static let patience = Duration.seconds(2)
  /// The bound address, with the port that the kernel chose if port 0 was configured.
  public let address: SocketAddress
  private let server: HTTPServer
  private let handler: WebHandler

  /// Called with errno for each connection that cannot be accepted.
  public var onFailure: ((Int32) -> Void)? {
    get { server.onFailure }
    set { server.onFailure = newValue }
  }

  private static let limits = {
    var limits = HTTPServer.Limits()
    limits.headerOctets = 8192
    limits.bodyOctets = ReportBatch.mostOctets
    limits.takesAnyMethod = true
    limits.idle = .seconds(30)
    limits.connections = Configuration.httpConnections
    return limits
  }()

  /// Creates a server that listens on a TCP address; port 0 lets the kernel choose one.
  ///
  /// - Throws: `HTTPServerError`.
  public init(on loop: EventLoop, _ address: SocketAddress, _ sources: WebSources) throws(HTTPServerError) {
    let handler = WebHandler(loop: loop, sources: sources, hosts: HostCheck(for: address))
    self.handler = handler
    server = HTTPServer(on: loop, limits: WebServer.limits) { handler.handle($0, $1) }
    self.address = try server.listen(on: address)
  }

  /// Takes what a reload may change: the token, and the dashboard.
  ///
  /// - Parameter makeDashboard: called if the dashboard is switched on.
  package func follow(_ settings: Configuration.Web, _ makeDashboard: () -> Dashboard) {
    handler.token = settings.reportToken
    handler.hosts.use(proxied: settings.hosts)
    if !settings.dashboard { endDashboard("The dashboard was switched off.", again: false) }
    if settings.dashboard, handler.dashboard == nil { handler.dashboard = makeDashboard() }
  }

  /// Ends all streams of the dashboard, which does not exist afterwards.
  ///
  /// - Parameters:
  ///   - reason: a sentence for the pages that are open.
  ///   - again: whether they may ask for another stream, of a daemon that is started again.
  package func endDashboard(_ reason: String, again: Bool) {
    handler.dashboard?.end(reason, again: again)
    handler.dashboard = nil
  }

  /// The dashboard; nil while it is off.
  package var dashboard: Dashboard? { handler.dashboard }
}

/// Routes requests to `/metrics`, `/healthz`, `/readyz`, `/report` and the dashboard.
final class WebHandler {
  private let loop: any Loop
  private let sources: WebSources
  var hosts: HostCheck
  /// Lets a request report addresses; nil if none may.
  var token: Secret?
  /// Nil while it is off.
  var dashboard: Dashboard?

  private static let text = "text/plain; charset=utf-8"

  init(loop: any Loop, sources: WebSources, hosts: HostCheck) {
    (self.loop, self.sources, self.hosts) = (loop, sources, hosts)
  }

  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    if Dashboard.has(request.path) {
      return dashboard.map { $0.handle(request, reply, hosts) } ?? Dashboard.refuseWhileOff(reply)
    }
    guard hosts.admits(request.host) else {
      return answer(
        reply, 421,
        "the Host field is not a name of this machine: use an address, localhost or the machine's name")
    }
    if request.path == "/report", let token { return report(request, reply, token) }
    guard request.method == .get || request.method == .head else {
      return answer(reply, 405, "only GET and HEAD are allowed", [HTTPField("Allow", "GET, HEAD")])
    }
    switch request.path {
    case "/metrics":
      let page = MetricsPage(sources.statistics(), ProcessNumbers.now, version: sources.version)
      send(reply, 200, MetricsPage.contentType, page.octets)
    case "/healthz": answerHealth(reply)
    case "/readyz":
      let isStopping = sources.isStopping()
      answer(reply, isStopping ? 503 : 200, isStopping ? "stopping" : "ready")
    default:
      let pages = token == nil ? "/metrics, /healthz and /readyz" : "/metrics, /healthz, /readyz and POST /report"
      answer(reply, 404, "not found; available: \(pages)")
    }
  }

  private func report(_ request: HTTPServerRequest, _ reply: HTTPServerReply, _ token: Secret) {
    guard request.method == .post else {
      return answer(reply, 405, "only POST is allowed", [HTTPField("Allow", "POST")])
    }
    guard let given = request.bearerToken, token.matches(Array(given.utf8)) else {
      let fields = [HTTPField("WWW-Authenticate", "Bearer")]
      return answer(reply, 401, "the Authorization field does not bear the token of web.report_token_file", fields)
    }
    let batch: ReportBatch
    do throws(ReportBatch.Refusal) {
      batch = try ReportBatch(request.body)
    } catch { return answer(reply, 400, error.reason) }
    let outcome = sources.report(batch)
    switch outcome {
    case .taken: send(reply, outcome.status, "application/json", Array("\(outcome.json)\n".utf8))
    case .off: answer(reply, outcome.status, outcome.line)
    case .tooMany: answer(reply, outcome.status, outcome.line, [HTTPField("Retry-After", "1")])
    }
  }

  /// Asks the listener threads. That this code runs at all proves that the resolver's loop turns.
  private func answerHealth(_ reply: HTTPServerReply) {
    loop.startTask { [self] in
      let standing = await sources.standing()
      let line = standing.isEmpty ? "ok" : "\(standing.joined(separator: ", ")) is stuck"
      answer(reply, standing.isEmpty ? 200 : 503, line)
    }
  }

  private func answer(_ reply: HTTPServerReply, _ status: Int, _ line: String, _ fields: [HTTPField] = []) {
    send(reply, status, WebHandler.text, Array("\(line)\n".utf8), fields)
  }

  private func send(
    _ reply: HTTPServerReply, _ status: Int, _ contentType: String, _ body: [UInt8], _ fields: [HTTPField] = []
  ) {
    let common = [
      HTTPField("Content-Type", contentType), HTTPField("Cache-Control", "no-store"),
      HTTPField("X-Content-Type-Options", "nosniff"),
    ]
    reply.send(status: status, fields: common + fields, body: body)
  }
}
