// ListServer.swift -- an HTTP server on loopback that serves what a test gives it, and knows what it was asked.

import Foundation

/// A server of texts, one connection at a time, on a thread of its own.
final class ListServer: @unchecked Sendable {
  /// What a path leads to.
  struct Page {
    var status = "200 OK"
    var body: [UInt8] = []
    /// Lines of the head.
    var fields: [String] = []
    /// The entity tag: who has it gets 304.
    var tag: String?
    /// Octets that are announced and never sent.
    var missing = 0
    /// Whether clients wait for it for ever.
    var stalls = false

    /// A text, with its tag.
    static func text(_ text: String, tag: String? = nil) -> Page { Page(body: Array(text.utf8), tag: tag) }
    static func status(_ status: String) -> Page { Page(status: status) }
    static func redirect(to target: String) -> Page { Page(status: "302 Found", fields: ["Location: \(target)"]) }
  }

  /// What was asked.
  struct Request {
    let path: String
    /// By names in lower case.
    let fields: [String: String]
  }

  let address: Address
  private let listener: Socket
  private let condition = NSCondition()
  private var pages: [String: Page] = [:]
  private var asked: [Request] = []
  private var held: [Socket] = []
  private var isStopping = false

  /// How long the thread waits before it looks whether it shall stop.
  private static let turn = Duration.milliseconds(50)

  /// - Parameter place: where it serves; a free port of 127.0.0.1 unless a test says so.
  init(at place: Address = Address("127.0.0.1", 0)) throws {
    listener = try Socket(SOCK_STREAM, boundTo: place, reusing: true)
    address = listener.address
    listen(listener.descriptor, 64)
    let thread = Thread { [weak self] in
      while let self, self.serve() {}
    }
    thread.start()
  }

  deinit { stop() }

  /// Ends the thread. Nothing is accepted any more.
  func stop() {
    condition.withLock { isStopping = true }
    shutdown(listener.descriptor, Int32(SHUT_RDWR))
  }

  /// What a path leads to from now on; paths without a page are 404.
  subscript(path: String) -> Page? {
    get { condition.withLock { pages[path] } }
    set { condition.withLock { pages[path] = newValue } }
  }

  /// The requests so far, oldest first.
  var requests: [Request] { condition.withLock { asked } }

  /// The URL of a path.
  func url(_ path: String) -> String { "http://\(address)\(path)" }

  /// One turn of the thread; false at the end.
  private func serve() -> Bool {
    if let client = listener.accept(within: ListServer.turn) { answer(client) }
    return condition.withLock { !isStopping }
  }

  private func answer(_ client: Socket) {
    var head: [UInt8] = []
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard let piece = client.receive(exactly: 1) else { return }
      head += piece
    }
    let lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    let path = lines[0].split(separator: " ").dropFirst().first.map(String.init) ?? ""
    let page = condition.withLock {
      asked.append(Request(path: path, fields: fields))
      return pages[path] ?? .status("404 Not Found")
    }
    if page.stalls { return condition.withLock { held.append(client) } }
    let isKnown = page.tag != nil && page.tag == fields["if-none-match"]
    let body = isKnown ? [] : page.body
    var answer = ["HTTP/1.1 \(isKnown ? "304 Not Modified" : page.status)", "Connection: close"] + page.fields
    if let tag = page.tag { answer.append("ETag: \(tag)") }
    if !isKnown { answer.append("Content-Length: \(body.count + page.missing)") }
    client.send(Array((answer + ["", ""]).joined(separator: "\r\n").utf8) + body)
  }
}
