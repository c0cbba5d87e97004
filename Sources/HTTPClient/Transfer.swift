// Transfer.swift -- one exchange of a request and a response, whatever carries it.

import EventLoop
import HTTPMessage

/// A request, and what has arrived of its response. Reused when it has ended. Loop thread only.
final class Transfer: CarriedTransfer {
  /// Owns it, from its first request on.
  unowned var generation: Generation?
  /// Resumed at the end of the transfer; nil while idle.
  var continuation: UnsafeContinuation<HTTPResult, Never>?
  /// Fires when the transfer's time is up.
  let timer = OwnedTimer()
  /// The time when its carrier received it; nil while it waits or is idle.
  var handedOverAt: BootInstant?
  /// What the queue of waiting transfers knows of it.
  var wait = TransferQueue.Wait()
  /// The index in the generation's list of transfers in flight.
  var position = 0
  /// How often it has started again because it was not processed.
  var repeats = 0
  /// How often its request was put on the wire before it started again.
  var timesSent = 0
  /// The question that it carries; nil while idle.
  var owner: (any TransferOwner)?
  /// Whether it waits for its carrier.
  var isWaiting: Bool { continuation != nil && handedOverAt == nil }
  /// Whether it waits, although there are connections.
  var isQueued = false
  /// Whether its owner's clients have been answered.
  private(set) var hasNoClients = false
  /// Why it got no connection of its own and waits for another one; nil if it does not.
  var refusedConnection: HTTPFailure?
  /// Whether the server asked for fewer transfers, on this stream or by a GOAWAY on its connection.
  var heardCalm = false

  private(set) var request = HTTPRequest(target: "/")
  /// The request's header fields, in the forms of the carriers.
  private(set) var fields: RequestFields?
  var headers = ResponseHeaders()
  /// The reason why what the server sent is not accepted.
  private(set) var refusal: HTTPFailure?
  private var body: [UInt8] = []
  /// Maximum octets of content.
  private var maxBody = 0

  /// libcurl's handle; nil until libcurl carries this transfer.
  var handle: CurlHandle?
  /// Its stream; nil while it has none.
  var stream: HTTP2Stream?

  /// Octets of content that it holds.
  var heldOctets: Int { body.capacity }

  /// Takes a request.
  ///
  /// - Returns: the failure if the request cannot be sent.
  func prepare(_ request: HTTPRequest, _ settings: OriginSettings) -> HTTPFailure? {
    guard request.method == .get || request.method == .post else {
      return HTTPFailure(.badRequest, "the client sends GET and POST only")
    }
    guard isTarget(request.target) else {
      return HTTPFailure(.badRequest, "the target is not a path of printable ASCII")
    }
    guard let fields = settings.fields(request.fields) else {
      return HTTPFailure(.badRequest, "a header field is not printable ASCII")
    }
    self.request = request
    self.fields = fields
    maxBody = settings.options.maxBody
    (repeats, timesSent) = (0, 0)
    forgetResponse()
    return nil
  }

  /// Whether the request may be sent once more.
  func mayRepeat() -> Bool { owner?.mayRepeat() ?? true }

  /// Clears what has arrived, before the request is sent once more.
  func forgetResponse() {
    headers.reset()
    body = []
    refusal = nil
    heardCalm = false
    refusedConnection = nil
  }

  /// Adds content. Returns false if it is too long, which is then the refusal.
  func received(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count + octets.count <= maxBody else {
      refusal = HTTPFailure(.tooLarge, "more than \(maxBody) octets of content")
      return false
    }
    body.append(contentsOf: octets)
    return true
  }

  /// Refuses the response if its header section is too long. Returns whether it is not.
  func note(headersFit: Bool) -> Bool {
    if !headersFit { refusal = HTTPFailure(.badHTTP, "more than \(ResponseHeaders.limit) octets of header fields") }
    return headersFit
  }

  /// Passes content to the sink. Returns false if that refuses it, which is then the refusal.
  func passed(_ octets: UnsafeBufferPointer<UInt8>, to sink: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    guard !sink(UnsafeRawBufferPointer(octets)) else { return true }
    refusal = HTTPFailure(.tooLarge, "more content than is taken")
    return false
  }

  /// Refuses the response if its content has several codings: one may unpack to much that the next one unpacks to nothing.
  func note(codings: Int) -> Bool {
    if codings > 1 { refusal = HTTPFailure(.badHTTP, "the content has several codings") }
    return codings <= 1
  }

  /// Refuses the response if its content comes in too many parts at once. Returns whether it does not.
  func note(partsFit: Bool) -> Bool {
    if !partsFit { refusal = HTTPFailure(.badHTTP, "the content comes in too many small parts") }
    return partsFit
  }

  /// Returns the response that has arrived, and releases its content.
  func takeResponse(status: Int, httpVersion: Int, remoteAddress: String) -> HTTPResponse {
    let response = HTTPResponse(
      status: status, contentType: headers.contentType.isEmpty ? nil : headers.contentType,
      age: headers.age.map { UInt32(clamping: $0) }, maxAge: headers.maxAge.map { UInt32(clamping: $0) },
      retryAfter: headers.retryAfter.map { .seconds($0) }, date: headers.date, entityTag: headers.entityTag,
      lastModified: headers.lastModified, location: headers.location, body: body,
      httpVersion: httpVersion, remoteAddress: remoteAddress, timesSent: timesSent + 1)
    body = []
    return response
  }

  /// Releases what an idle transfer does not need.
  func rest() {
    body = []
    owner?.isCarried(by: nil)
    owner = nil
    isQueued = false
    hasNoClients = false
    wait.forgetClients()
  }

  func isJoined(by client: UInt64) {
    if continuation != nil { generation?.isJoined(self, by: client) }
  }

  func isLate() {
    hasNoClients = true
    generation?.isLate(self)
  }
}

/// Whether a text is a valid request target: it begins with a slash and is printable ASCII without spaces.
private func isTarget(_ text: String) -> Bool {
  var text = text
  return text.withUTF8 { $0.first == UInt8(ascii: "/") && $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
}
