// Transfer.swift -- one easy handle, configured once and reused for many transfers.
//
// Owned by its generation. libcurl's callbacks receive it as an unretained pointer and only record.

import CCurl
import EventLoop
import Glibc
import HTTPMessage

/// One exchange of a request and a response, or an idle handle. Loop thread only.
final class Transfer {
  /// libcurl's handle, owned.
  let easy: UnsafeMutableRawPointer
  /// Resumed at the end of the transfer; nil while idle.
  var continuation: UnsafeContinuation<HTTPResult, Never>?
  /// Fires when the transfer's time is up.
  var timer: LoopTimer?
  /// The time when libcurl received the transfer; nil while it waits or is idle.
  var handedOverAt: BootInstant?
  /// The key of its fair share.
  private(set) var share: UInt64 = 0
  /// Its links in the queue of waiting transfers.
  var link = TransferQueue.Link()
  /// The index in the generation's list of transfers in flight.
  var position = 0
  /// The connection that it uses; nil until libcurl reports it.
  var socket: CurlSocket?
  /// Whether it has or had a connection or a stream. If not, it waits in libcurl's queue.
  var hasConnection: Bool { socket != nil || easy.microseconds(CURLINFO_PRETRANSFER_TIME_T) > 0 }
  /// Whether libcurl has begun to send the request.
  var wasSent: Bool { handedOverAt != nil && easy.microseconds(CURLINFO_PRETRANSFER_TIME_T) > 0 }
  /// Whether the request is a POST, which takes two writes with HTTP/2.
  private(set) var isPost = false
  /// Whether the server asked for fewer transfers, on this stream or on a connection that libcurl read meanwhile.
  private(set) var heardCalm = false
  /// Whether it was refused unprocessed and has started a second time.
  var isAgain = false

  private let settings: OriginSettings
  /// Maximum octets of content, from the settings.
  private let maxBody: Int
  private let errorText: UnsafeMutablePointer<CChar>
  private var headerList: CurlList?
  /// The content of the current POST; libcurl reads it in place.
  private var content = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
  private var headers = ResponseHeaders()
  private var body: [UInt8] = []
  private var refusal: HTTPFailure?
  private var isWatched = false
  /// The `errno` of a failed socket() call, which libcurl does not report; 0 if there was none.
  private var socketError: Int32 = 0

  /// Creates a handle for one generation. libcurl passes `generation` to the callback that closes a socket.
  init?(_ settings: OriginSettings, generation: UnsafeMutableRawPointer) {
    guard let easy = curl_easy_init() else { return nil }
    self.easy = easy
    self.settings = settings
    maxBody = settings.options.maxBody
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    configure(easy, settings, generation: generation)
    let context = Unmanaged.passUnretained(self).toOpaque()
    easy.set(CURLOPT_PRIVATE, context)
    easy.set(CURLOPT_ERRORBUFFER, errorText)
    easy.set(CURLOPT_WRITEDATA, context)
    easy.set(CURLOPT_HEADERDATA, context)
    easy.set(CURLOPT_OPENSOCKETDATA, context)
    easy.set(CURLOPT_DEBUGDATA, context)
    _ = ccurl_setopt_debug_callback(easy, transferWasCommented)
    _ = ccurl_setopt_opensocket_callback(easy, transferWantsSocket)
    _ = ccurl_setopt_data_callback(easy, CURLOPT_WRITEFUNCTION, transferDidReceiveBody)
    _ = ccurl_setopt_data_callback(easy, CURLOPT_HEADERFUNCTION, transferDidReceiveHeader)
  }

  deinit {
    curl_easy_cleanup(easy)
    errorText.deallocate()
    content.deallocate()
  }

  /// Sets the options that differ from the previous transfer.
  ///
  /// - Parameter isWatched: whether to read libcurl's log texts, the only source of the reason of a GOAWAY.
  /// - Returns: the failure if the request cannot be sent.
  func prepare(_ request: HTTPRequest, isWatched: Bool = false) -> HTTPFailure? {
    share = request.share
    guard isTarget(request.target) else {
      return HTTPFailure(.badRequest, "the target is not a path of printable ASCII")
    }
    guard let list = settings.headerList(request.headers) else {
      return HTTPFailure(.badRequest, "a header field is not printable ASCII")
    }
    easy.set(CURLOPT_REQUEST_TARGET, request.target)
    if list !== headerList {
      easy.set(CURLOPT_HTTPHEADER, list.head)
      headerList = list
    }
    switch request.method {
    case .get:
      if isPost { easy.set(CURLOPT_HTTPGET, 1) }
      isPost = false
    case .post:
      holdContent(request.body)
      easy.set(CURLOPT_POSTFIELDS, content.baseAddress)
      easy.set(CURLOPT_POSTFIELDSIZE, request.body.count)
      isPost = true
    case .head, .put, .delete: return HTTPFailure(.badRequest, "the client sends GET and POST only")
    }
    if isWatched != self.isWatched { easy.set(CURLOPT_VERBOSE, isWatched ? 1 : 0) }
    self.isWatched = isWatched
    heardCalm = false
    isAgain = false
    headers.reset()
    body = []
    refusal = nil
    socketError = 0
    errorText[0] = 0
    return nil
  }

  /// Whether libcurl gave up after it repeated the transfer, each time on a new connection and without any octet of a
  /// response.
  func wasRepeated(_ code: CURLcode) -> Bool { code == CURLE_SEND_ERROR && detail.hasPrefix(repeatedInVain) }

  /// Returns the result of a completed transfer.
  ///
  /// - Parameter isFirst: whether the server has not answered yet.
  func result(_ code: CURLcode, isFirst: Bool) -> HTTPResult {
    if let refusal { return .failure(refusal) }
    guard code == CURLE_OK else {
      let detail = detail
      if code == CURLE_HTTP2_STREAM, detail.contains(streamCalm) { heardCalm = true }
      if heardCalm { return .failure(HTTPFailure(.calm, "the server asked for fewer transfers")) }
      let systemError = socketError == 0 ? Int32(easy.long(CURLINFO_OS_ERRNO)) : socketError
      var failure = HTTPFailure(code: code, systemError: systemError, detail: detail)
      failure.explain(code, scheme: settings.server.scheme, detail: detail, isFirst: isFirst)
      return .failure(failure)
    }
    let response = HTTPResponse(
      status: easy.long(CURLINFO_RESPONSE_CODE), contentType: headers.contentType.isEmpty ? nil : headers.contentType,
      age: headers.age.map { UInt32(clamping: $0) }, maxAge: headers.maxAge.map { UInt32(clamping: $0) },
      retryAfter: headers.retryAfter.map { .seconds($0) }, date: headers.date, entityTag: headers.entityTag,
      body: body,
      httpVersion: headers.version, remoteAddress: remoteAddress)
    body = []
    return .response(response)
  }

  /// Releases the content of a failed transfer: an idle handle holds none.
  func rest() { body = [] }

  /// Octets of content that it holds.
  var heldOctets: Int { body.capacity }

  private func holdContent(_ octets: [UInt8]) {
    if octets.count > content.count || content.isEmpty {
      content.deallocate()
      content = .allocate(capacity: max(512, octets.count))
    }
    _ = content.update(fromContentsOf: octets)
  }

  /// libcurl's error message, sanitized for a log line.
  private var detail: String {
    let length = strnlen(errorText, Int(CURL_ERROR_SIZE))
    let octets = UnsafeBufferPointer(start: errorText, count: length).map { octet in
      (0x20...0x7E).contains(octet) ? UInt8(octet) : UInt8(ascii: "?")
    }
    return String(decoding: octets, as: UTF8.self)
  }

  private var remoteAddress: String {
    if let known = socket?.remoteAddress { return known }
    let address = easy.string(CURLINFO_PRIMARY_IP)
    socket?.remoteAddress = address
    return address
  }

  fileprivate func openSocket(_ address: curl_sockaddr) -> Int32 {
    let descriptor = Glibc.socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
    if descriptor < 0 { socketError = errno }
    return descriptor
  }

  fileprivate func received(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
    guard body.count + octets.count <= maxBody else {
      refusal = HTTPFailure(.tooLarge, "more than \(maxBody) octets of content")
      return false
    }
    body.append(contentsOf: octets)
    return true
  }

  fileprivate func heard(_ comment: UnsafeBufferPointer<UInt8>) {
    let last = comment.count - connectionCalm.count
    guard last >= 0, !heardCalm else { return }
    heardCalm = (0...last).contains { comment[$0...].starts(with: connectionCalm) }
  }

  fileprivate func receivedHeader(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
    guard headers.take(line.span) else {
      refusal = HTTPFailure(.badHTTP, "more than \(ResponseHeaders.limit) octets of header fields")
      return false
    }
    return true
  }
}

/// The end of libcurl's message about a stream that was reset with ENHANCE_YOUR_CALM.
private let streamCalm = "(err 11)"
/// A part of libcurl's log text about a GOAWAY with ENHANCE_YOUR_CALM; the word before it differs between versions.
private let connectionCalm = Array("GOAWAY, error=11,".utf8)
/// The start of libcurl's message about a transfer that failed in spite of retries.
private let repeatedInVain = "Connection died, tried "

/// Whether a text is a valid request target: it begins with a slash and is printable ASCII without spaces.
private func isTarget(_ text: String) -> Bool {
  var text = text
  return text.withUTF8 { $0.first == UInt8(ascii: "/") && $0.allSatisfy { $0 > 0x20 && $0 < 0x7F } }
}

private func transferWantsSocket(
  _ context: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue().openSocket(address!.pointee)
}

/// Octets that libcurl owns, valid during its callback.
private func handedOver(_ octets: UnsafeMutablePointer<CChar>?, _ count: Int) -> UnsafeBufferPointer<UInt8> {
  UnsafeBufferPointer(start: UnsafeRawPointer(octets)?.assumingMemoryBound(to: UInt8.self), count: count)
}

private func transferDidReceiveBody(
  _ octets: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
  return transfer.received(handedOver(octets, count)) ? count : 0
}

private func transferDidReceiveHeader(
  _ octets: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
  return transfer.receivedHeader(handedOver(octets, count)) ? count : 0
}

/// Ignores everything but log texts: libcurl also passes requests, which contain secrets.
private func transferWasCommented(
  _: UnsafeMutableRawPointer?, _ type: curl_infotype, _ octets: UnsafeMutablePointer<CChar>?, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int32 {
  guard type == CURLINFO_TEXT else { return 0 }
  let transfer = Unmanaged<Transfer>.fromOpaque(context!).takeUnretainedValue()
  transfer.heard(handedOver(octets, count))
  return 0
}
