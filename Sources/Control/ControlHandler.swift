// ControlHandler.swift -- from a request on the control socket to its answer, as human-readable text or as JSON.
//
//   GET /stats[?by-name]
//   POST /flush[?below]     names in the body, one a line; without any it means everything
//   GET /cache[?limit=N]    a summary and the busiest entries
//   GET /cache?name=NAME    percent-encoded
//   GET /providers
//   POST /refresh           a name and types, one a line; without types those that the cache has
//   POST /report-bad        a name and an address, one a line
//   POST /reload
//   GET /configuration      the path of the file that a reload reads
//   GET /top                for `httpdnsd top`
//   GET /tail               answered queries, until the client leaves (TailService.swift)
//
// JSON comes where the Accept field is `application/json`. A refusal is a line of text. An answer that finds nothing, or
// where a part of the request has failed, has the field `Result: nothing`.

import DNSWire
import EventLoop
import Forwarder
import HTTPServer

/// Answers requests. Loop's thread only.
struct ControlHandler {
  let loop: any Loop
  let actions: ControlActions
  let tails: TailService

  /// Says that nothing was found.
  static let nothing = HTTPServerField("Result", "nothing")

  private typealias Work = @Sendable () async -> any ControlText

  /// The method and the work of a path.
  private struct Command {
    let method: HTTPServerMethod
    /// Reads the request, and gives its work.
    let work: (HTTPServerRequest) throws(ControlRefusal) -> Work

    init(_ method: HTTPServerMethod, _ work: @escaping (HTTPServerRequest) throws(ControlRefusal) -> Work) {
      self.method = method
      self.work = work
    }
  }

  /// Answers, now or when the work is done.
  func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    if request.path == "/tail" { return tail(request, reply) }
    guard let command = command(request.path) else {
      return refuse(reply, ControlRefusal(status: 404, reason: "this version has no such command"))
    }
    guard request.method == command.method else {
      let method = command.method.rawValue
      return refuse(reply, ControlRefusal(status: 405, reason: "only \(method)"), allow: method)
    }
    do throws(ControlRefusal) {
      let work = try command.work(request)
      answer(reply, form(of: request), work)
    } catch { refuse(reply, error) }
  }

  private func tail(_ request: HTTPServerRequest, _ reply: HTTPServerReply) {
    guard request.method == .get else {
      return refuse(reply, ControlRefusal(status: 405, reason: "only GET"), allow: "GET")
    }
    do throws(ControlRefusal) {
      try tails.begin(request, reply, form(of: request))
    } catch { refuse(reply, error) }
  }

  private func form(of request: HTTPServerRequest) -> ControlForm {
    request.field("Accept") == ControlForm.json.contentType ? .json : .text
  }

  private func command(_ path: String) -> Command? {
    let actions = actions
    switch path {
    case "/stats":
      return Command(.get) { request throws(ControlRefusal) in
        guard request.query == nil || request.query == "by-name" else {
          throw ControlRefusal(status: 400, reason: "an unknown parameter; by-name is known")
        }
        guard request.query != nil else { return { StatsText(numbers: await actions.numbers()) } }
        return { NamesText(await actions.names()) }
      }
    case "/flush":
      return Command(.post) { request throws(ControlRefusal) in
        let names = try FlushRequest(request).names
        return { FlushText(counts: await actions.flush(names)) }
      }
    case "/cache":
      return Command(.get) { request throws(ControlRefusal) in
        if let wanted = try OverviewRequest(request) {
          return { OverviewText(overview: await actions.overview(wanted.limit)) }
        }
        let name = try DomainName(request)
        return { ContentText(name: name, content: await actions.content(name)) }
      }
    case "/providers":
      return Command(.get) { _ in { ProvidersText(reports: await actions.providers()) } }
    case "/refresh":
      return Command(.post) { request throws(ControlRefusal) in
        let wanted = try RefreshRequest(request)
        return { RefreshText(name: wanted.name, summary: await actions.refresh(wanted.name, wanted.types)) }
      }
    case "/report-bad":
      return Command(.post) { request throws(ControlRefusal) in
        let bad = try BadAddressRequest(request)
        return {
          BadAddressText(
            name: bad.name, address: bad.address, outcome: await actions.reportBad(bad.address, bad.name))
        }
      }
    case "/reload":
      return Command(.post) { _ in { ReloadText(report: await actions.reload(), file: actions.file) } }
    case "/configuration":
      return Command(.get) { _ in { ConfigurationText(file: actions.file) } }
    case "/top":
      return Command(.get) { _ in { TopSample(await actions.numbers(), names: await actions.names().reports) } }
    default: return nil
    }
  }

  private func answer(
    _ reply: HTTPServerReply, _ form: ControlForm, _ work: @escaping Work
  ) {
    // The reply stays on the loop's thread: the task prefers it, and nothing else has the reply.
    nonisolated(unsafe) let reply = reply
    Task(executorPreference: loop) {
      let text = await work()
      let body = form == .json ? text.json + "\n" : text.text
      let fields = [HTTPServerField("Content-Type", form.contentType)]
      reply.send(
        status: 200, fields: fields + (text.isNothing ? [ControlHandler.nothing] : []), body: Array(body.utf8))
    }
  }

  private func refuse(_ reply: HTTPServerReply, _ refusal: ControlRefusal, allow: String? = nil) {
    reply.send(
      status: refusal.status, fields: allow.map { [HTTPServerField("Allow", $0)] } ?? [],
      body: Array("\(refusal.reason)\n".utf8))
  }
}

/// The form of an answer.
public enum ControlForm: Sendable {
  /// Human-readable.
  case text
  /// One JSON object.
  case json

  /// The value of Accept and of Content-Type.
  var contentType: String {
    switch self {
    case .text: "text/plain; charset=utf-8"
    case .json: "application/json"
    }
  }
}

/// Why a request is not answered.
struct ControlRefusal: Error, Equatable {
  /// The status of the response.
  var status: Int
  /// One line.
  var reason: String
}

/// An answer in both forms.
protocol ControlText: Sendable {
  /// Whole lines.
  var text: String { get }
  /// A JSON object.
  var json: String { get }
  /// Whether nothing was found, or a part of the request has failed.
  var isNothing: Bool { get }
}

extension ControlText {
  var isNothing: Bool { false }
}
