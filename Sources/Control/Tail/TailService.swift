// TailService.swift -- streams queries as they are answered to a few readers. Resolver's loop only.
//
// The response consists of lines until the reader disconnects. Each start and end is logged with the reader's user ID,
// because the lines contain names and clients.

import Frontend
import HTTPMessage
import HTTPServer

final class TailService {
  /// The most readers at once.
  static let most = 2
  /// The most octets that may wait for a reader; one that falls further behind is cut off.
  static let longestBacklog = 256 << 10
  /// A reader that reads nothing for this time is cut off as well.
  private static let patience = Duration.seconds(30)

  /// Whether users other than root may read.
  var isOpen = false
  private let actions: any ControlActions
  private var tails: [Tail] = []

  private final class Tail {
    let reply: HTTPServerReply
    let user: UInt32
    var watch: QueryWatch?

    init(_ reply: HTTPServerReply, user: UInt32) { (self.reply, self.user) = (reply, user) }
  }

  init(_ actions: any ControlActions) { self.actions = actions }

  /// Streams queries to a reader until it disconnects.
  func begin(_ wanted: TailRequest, _ reply: HTTPServerReply, _ form: ControlForm) throws(ControlRefusal) {
    guard let user = reply.peerUser, user == 0 || isOpen else {
      let help = "control.tail = true lets every user of the control socket do so"
      throw ControlRefusal(status: 403, reason: "only root may watch queries; \(help)")
    }
    guard tails.count < TailService.most else {
      throw ControlRefusal(status: 503, reason: "\(TailService.most) readers already watch queries, which is the limit")
    }
    let tail = Tail(reply, user: user)
    reply.startStream(
      status: 200, fields: [HTTPField("Content-Type", form.contentType)], patience: TailService.patience
    ) { [weak self, weak tail] in
      if let tail { self?.end(tail, nil) }
    }
    let watch = QueryWatch(of: wanted.name, onlyFailed: wanted.onlyFailed, asJSON: form == .json) {
      [weak self, weak tail] in
      if let tail { self?.send($0, to: tail) }
    }
    tail.watch = watch
    tails.append(tail)
    actions.log("user \(user) watches queries (\(tails.count) of at most \(TailService.most) readers)")
    actions.watch(watch)
  }

  private func send(_ lines: [String], to tail: Tail) {
    tail.reply.write(lines.flatMap(\.utf8))
    guard tail.reply.unsentOctets > TailService.longestBacklog else { return }
    end(tail, "cut off because it reads too slowly")
    tail.reply.reset()
  }

  private func end(_ tail: Tail, _ reason: String?) {
    guard let watch = tail.watch else { return }
    tail.watch = nil
    actions.unwatch(watch)
    tails.removeAll { $0 === tail }
    actions.log("user \(tail.user) no longer watches queries\(reason.map { ": \($0)" } ?? "")")
  }
}
