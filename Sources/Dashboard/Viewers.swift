// Viewers.swift -- the pages that are open: each event is written once, and sent to all of them. Loop's thread only.

import EventLoop
import HTTPMessage
import HTTPServer
import JSON

/// The streams of `/dashboard/events`.
final class Viewers {
  /// One of them.
  final class Viewer {
    let session: Sessions.Session?
    fileprivate let reply: HTTPServerReply
    fileprivate let begin: BootInstant

    fileprivate init(_ reply: HTTPServerReply, _ session: Sessions.Session?, _ begin: BootInstant) {
      (self.reply, self.session, self.begin) = (reply, session, begin)
    }
  }

  /// Octets that may wait for a page; one that falls further behind is cut off.
  static let longestBacklog = 64 << 10
  /// How long a page may stay open before it has to ask again.
  private static let life = Duration.seconds(12 * 3600)
  /// A page that reads nothing for this time is cut off as well.
  private static let patience = Duration.seconds(30)

  /// Called when a viewer has left.
  var changed: () -> Void = {}
  private let loop: any Loop
  private var viewers: [Viewer] = []

  init(on loop: any Loop) { self.loop = loop }

  var count: Int { viewers.count }
  var hasSessions: Bool { viewers.contains { $0.session != nil } }

  /// Begins a stream.
  func begin(_ reply: HTTPServerReply, _ fields: [HTTPField], _ session: Sessions.Session?) -> Viewer {
    let viewer = Viewer(reply, session, loop.now)
    reply.startStream(status: 200, fields: fields, patience: Viewers.patience) { [weak self, weak viewer] in
      if let viewer { self?.remove(viewer) }
    }
    viewers.append(viewer)
    return viewer
  }

  /// Sends an event; a viewer that does not keep up is cut off.
  func send(_ event: [UInt8], to viewer: Viewer) {
    if !viewer.reply.write(event, leavingAtMost: Viewers.longestBacklog) { remove(viewer) }
  }

  func sendToAll(_ event: [UInt8]) { for viewer in viewers { send(event, to: viewer) } }

  func sendToSessions(_ event: [UInt8]) {
    for viewer in viewers where viewer.session != nil { send(event, to: viewer) }
  }

  /// Ends the streams that are too old, whose pages ask again, and those of sessions that `isValid` does not know.
  func endOld(_ isValid: (Sessions.Session) -> Bool) {
    for viewer in viewers {
      if let session = viewer.session, !isValid(session) {
        end(viewer, PageEvent.signedOut)
      } else if loop.now - viewer.begin > Viewers.life {
        end(viewer, PageEvent.again)
      }
    }
  }

  /// Ends all streams after a last event.
  func endAll(_ event: [UInt8]) { for viewer in viewers { end(viewer, event) } }

  private func end(_ viewer: Viewer, _ event: [UInt8]) {
    viewer.reply.write(event)
    viewer.reply.endStream()
    remove(viewer)
  }

  private func remove(_ viewer: Viewer) {
    viewers.removeAll { $0 === viewer }
    changed()
  }
}

/// Events as `text/event-stream` has them.
enum PageEvent {
  static let contentType = "text/event-stream"
  /// The stream ends, and the page may ask for another.
  static let again = notice("The stream was open for twelve hours.", again: true)
  static let signedOut = notice("The session has ended.", again: true)

  /// An event whose data is one line.
  static func event(_ name: String, id: UInt64? = nil, _ data: String) -> [UInt8] {
    Array("event: \(name)\n\(id.map { "id: \($0)\n" } ?? "")data: \(data)\n\n".utf8)
  }

  /// - Parameters:
  ///   - text: a sentence.
  ///   - again: whether the page may take up the stream again.
  ///   - history: whether the rows that the page has are no longer true.
  static func notice(_ text: String, again: Bool, history: Bool = false) -> [UInt8] {
    event(
      "notice",
      JSONText.object(["text": JSONText.string(text), "again": "\(again)", "history": "\(history)"]))
  }
}
