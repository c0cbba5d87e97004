// TailService.swift -- streams queries as they are answered to a few readers. Resolver's loop only.
//
// The response consists of lines until the reader disconnects. Each start and end is logged with the reader's user ID,
// because the lines contain names and clients.

import Frontend
import HTTPMessage
import HTTPServer

package final class TailService {
  /// How queries are written.
  package enum Form {
    case text, json
    /// As `query` events of a stream of events, whose response has these fields.
    case events([HTTPField])

    fileprivate var fields: [HTTPField] {
      switch self {
      case .text: [HTTPField("Content-Type", ControlForm.text.contentType)]
      case .json: [HTTPField("Content-Type", ControlForm.json.contentType)]
      case .events(let fields): fields
      }
    }

    fileprivate func octets(_ lines: [String]) -> [UInt8] {
      guard case .events = self else { return lines.flatMap(\.utf8) }
      return lines.flatMap { Array("event: query\ndata: \($0)\n".utf8) }
    }

    fileprivate var isText: Bool { if case .text = self { true } else { false } }
  }

  /// Why users other than root may not read, and what lets them.
  package static let help =
    "only root may watch queries; control.tail = true lets every user of the control socket do so"
  /// The most readers at once.
  static let most = 2
  /// The most octets that may wait for a reader of the control socket.
  package static let longestBacklog = 256 << 10
  /// A reader that reads nothing for this time is cut off as well.
  private static let patience = Duration.seconds(30)

  /// `control.tail`: whether users other than root may read. Those who no longer may are cut off.
  package var isOpen = false {
    didSet { for tail in tails { tail.endIfRefused([]) } }
  }
  private let actions: any ControlActions
  private var tails: [Tail] = []

  /// A reader.
  package final class Tail {
    fileprivate let reply: HTTPServerReply
    fileprivate let user: UInt32
    fileprivate let form: Form
    fileprivate let backlog: Int
    fileprivate let mayRead: () -> Bool
    fileprivate var watch: QueryWatch?
    fileprivate weak var service: TailService?

    fileprivate init(
      _ reply: HTTPServerReply, _ user: UInt32, _ form: Form, backlog: Int, mayRead: @escaping () -> Bool
    ) {
      (self.reply, self.user, self.form, self.backlog, self.mayRead) = (reply, user, form, backlog, mayRead)
    }

    /// Whether it still reads.
    package var isOpen: Bool { watch != nil }

    /// Sends a comment, so that a reader that has vanished is noticed, and that one which is there knows of the daemon. For
    /// events only.
    package func beat() { service?.send(Array(":\n\n".utf8), to: self) }

    /// Ends the stream after its last octets if the reader may no longer read.
    package func endIfRefused(_ last: [UInt8]) { if !mayRead() { end(last) } }

    /// Ends the stream after its last octets.
    package func end(_ last: [UInt8]) {
      guard isOpen else { return }
      service?.end(self, nil)
      reply.write(last)
      reply.endStream()
    }
  }

  package init(_ actions: any ControlActions) { self.actions = actions }

  /// The number of readers.
  package var count: Int { tails.count }

  /// Whether a user may read.
  package func admits(_ user: UInt32) -> Bool { user == 0 || isOpen }

  /// Streams queries to a user of the control socket until it disconnects.
  ///
  /// - Parameters:
  ///   - backlog: the most octets that may wait for the reader; one that falls further behind is cut off.
  ///   - isValid: whether the reader may still read; asked before anything is sent.
  @discardableResult
  package func begin(
    _ wanted: TailRequest, _ reply: HTTPServerReply, _ form: Form, for user: UInt32?,
    backlog: Int = TailService.longestBacklog, while isValid: @escaping () -> Bool = { true }
  ) throws(ControlRefusal) -> Tail {
    guard let user, admits(user) else { throw ControlRefusal(status: 403, reason: TailService.help) }
    guard tails.count < TailService.most else {
      throw ControlRefusal(status: 503, reason: "\(TailService.most) readers already watch queries, which is the limit")
    }
    let tail = Tail(reply, user, form, backlog: backlog) { [weak self] in (self?.admits(user) ?? false) && isValid() }
    tail.service = self
    reply.startStream(status: 200, fields: form.fields, patience: TailService.patience) { [weak self, weak tail] in
      if let tail { self?.end(tail, nil) }
    }
    let watch = QueryWatch(of: wanted.name, onlyFailed: wanted.onlyFailed, asJSON: !form.isText) {
      [weak self, weak tail] in
      if let tail { self?.send(tail.form.octets($0), to: tail) }
    }
    tail.watch = watch
    tails.append(tail)
    actions.log("user \(user) watches queries (\(tails.count) of at most \(TailService.most) readers)")
    actions.watch(watch)
    return tail
  }

  private func send(_ octets: [UInt8], to tail: Tail) {
    guard tail.mayRead() else { return tail.end([]) }
    if !tail.reply.write(octets, leavingAtMost: tail.backlog) { end(tail, "cut off because it reads too slowly") }
  }

  private func end(_ tail: Tail, _ reason: String?) {
    guard let watch = tail.watch else { return }
    tail.watch = nil
    actions.unwatch(watch)
    tails.removeAll { $0 === tail }
    actions.log("user \(tail.user) no longer watches queries\(reason.map { ": \($0)" } ?? "")")
  }
}
