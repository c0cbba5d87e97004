// CurlHandle.swift -- one easy handle, configured once and reused for many transfers.
//
// Owned by its transfer. libcurl's callbacks receive it as an unretained pointer and only record.

import CCurl
import EventLoop
import Glibc
import HTTPMessage
import Streams

/// What libcurl needs to carry a transfer. Loop thread only.
final class CurlHandle {
  /// libcurl's handle, owned.
  let easy: UnsafeMutableRawPointer
  /// The connection that it uses; nil until libcurl reports it.
  var socket: CurlSocket?
  /// Whether it has or had a connection or a stream. If not, it waits in libcurl's queue.
  var hasConnection: Bool { socket != nil || wasSent }
  /// Whether it has been added to libcurl's multi handle.
  var isHandedOver = false
  /// Whether libcurl has begun to send the request.
  private(set) var wasSent = false
  /// Whether the request is being sent on the connection that it has now.
  private var isSending = false
  /// Whether the request is a POST, which takes two writes with HTTP/2.
  private(set) var isPost = false

  /// Owns this handle.
  private unowned let transfer: Transfer
  private let settings: OriginSettings
  /// Has the transfer.
  private unowned let carrier: CurlCarrier
  private let errorText: UnsafeMutablePointer<CChar>
  private var fields: RequestFields?
  private var resolve: CurlList?
  /// The content of the current POST; libcurl reads it in place.
  private var content = UnsafeMutableBufferPointer<UInt8>(start: nil, count: 0)
  private var isWatched = false
  /// The `errno` of a failed socket() call, which libcurl does not report; 0 if there was none.
  private var socketError: Int32 = 0
  /// Whether the owner of the transfer did not let it be sent once more.
  private var isRepeatRefused = false
  /// Whether the transfer was ended before its content, which has no use.
  private var isContentUnread = false
  /// Whether the current transfer got a connection that was opened ahead.
  private var tookSpare = false
  /// The address of the latest socket that libcurl has opened for it.
  private var opened: SocketAddress?

  init?(_ transfer: Transfer, _ settings: OriginSettings, _ carrier: CurlCarrier) {
    guard let easy = curl_easy_init() else { return nil }
    self.easy = easy
    self.transfer = transfer
    self.settings = settings
    self.carrier = carrier
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    configure(easy, settings, carrier.order, carrier: Unmanaged.passUnretained(carrier).toOpaque())
    let context = Unmanaged.passUnretained(self).toOpaque()
    easy.set(CURLOPT_PRIVATE, Unmanaged.passUnretained(transfer).toOpaque())
    easy.set(CURLOPT_ERRORBUFFER, errorText)
    easy.set(CURLOPT_WRITEDATA, context)
    easy.set(CURLOPT_HEADERDATA, context)
    easy.set(CURLOPT_OPENSOCKETDATA, context)
    easy.set(CURLOPT_SOCKOPTDATA, context)
    easy.set(CURLOPT_DEBUGDATA, context)
    easy.set(CURLOPT_PREREQDATA, context)
    easy.set(CURLOPT_XFERINFODATA, context)
    _ = ccurl_setopt_progress_callback(easy, handleHasProgress)
    _ = ccurl_setopt_prereq_callback(easy, handleWillSend)
    _ = ccurl_setopt_debug_callback(easy, handleWasCommented)
    _ = ccurl_setopt_opensocket_callback(easy, handleWantsSocket)
    _ = ccurl_setopt_sockopt_callback(easy, handleHasSocket)
    _ = ccurl_setopt_data_callback(easy, CURLOPT_WRITEFUNCTION, handleDidReceiveBody)
    _ = ccurl_setopt_data_callback(easy, CURLOPT_HEADERFUNCTION, handleDidReceiveHeader)
  }

  deinit {
    curl_easy_cleanup(easy)
    errorText.deallocate()
    content.deallocate()
  }

  /// Sets the options that differ from the previous request.
  ///
  /// - Parameter isWatched: whether to read libcurl's log texts, the only source of the reason of a GOAWAY.
  func prepare(isWatched: Bool) {
    let request = transfer.request
    easy.set(CURLOPT_REQUEST_TARGET, request.target)
    if carrier.order.resolve !== resolve {
      resolve = carrier.order.resolve
      easy.set(CURLOPT_RESOLVE, resolve?.head)
    }
    if transfer.fields !== fields {
      fields = transfer.fields
      easy.set(CURLOPT_HTTPHEADER, fields?.list.head)
    }
    if request.method == .post {
      holdContent(request.body)
      easy.set(CURLOPT_POSTFIELDS, content.baseAddress)
      easy.set(CURLOPT_POSTFIELDSIZE, request.body.count)
      isPost = true
    } else {
      if isPost { easy.set(CURLOPT_HTTPGET, 1) }
      isPost = false
    }
    if isWatched != self.isWatched { easy.set(CURLOPT_VERBOSE, isWatched ? 1 : 0) }
    self.isWatched = isWatched
    socketError = 0
    (wasSent, isSending, isRepeatRefused) = (false, false, false)
    (tookSpare, opened, isContentUnread) = (false, nil, false)
    errorText[0] = 0
  }

  /// Whether the transfer may start again: libcurl gave up after it repeated the transfer, each time on a new connection
  /// and without any octet of a response; or the server closed a connection that had been opened ahead. libcurl repeats
  /// a transfer itself only when it has used the connection before.
  func mayStartAgain(_ code: CURLcode) -> Bool {
    switch code {
    case CURLE_SEND_ERROR where detail.hasPrefix(repeatedInVain): true
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_SSL_CONNECT_ERROR:
      tookSpare && easy.long(CURLINFO_RESPONSE_CODE) == 0
    default: false
    }
  }

  /// Returns the result of a completed transfer.
  ///
  /// - Parameter isFirst: whether the server has not answered yet.
  func result(_ code: CURLcode, isFirst: Bool) -> HTTPResult {
    if let refusal = transfer.refusal { return .failure(refusal) }
    if isRepeatRefused { return .failure(.notRepeated) }
    guard code == CURLE_OK || isContentUnread else {
      let detail = detail
      if code == CURLE_HTTP2_STREAM, detail.contains(streamCalm) { transfer.heardCalm = true }
      if transfer.heardCalm { return .failure(.calm) }
      if let failure = easy.proxyFailure(code) { return .failure(failure) }
      let systemError = socketError == 0 ? Int32(easy.long(CURLINFO_OS_ERRNO)) : socketError
      var failure = HTTPFailure(code: code, systemError: systemError, detail: detail)
      let isCutOff = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR
      failure.explain(scheme: settings.server.scheme, detail: detail, isFirst: isFirst && isCutOff)
      return .failure(failure)
    }
    return .response(
      transfer.takeResponse(
        status: easy.long(CURLINFO_RESPONSE_CODE), httpVersion: transfer.headers.version, remoteAddress: remoteAddress))
  }

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

  /// The address of its connection. libcurl tells it from the end of the TLS handshake on; older versions did before.
  var peer: SocketAddress? {
    let text = easy.string(CURLINFO_PRIMARY_IP)
    let host = text.isEmpty ? opened?.host : text
    return carrier.order.addresses.first { $0.host == host }
  }

  /// libcurl is about to send the request: for the first time, or because a connection was closed on it.
  ///
  /// - Returns: whether it may.
  fileprivate func willSend() -> Bool {
    if wasSent {
      isRepeatRefused = !transfer.mayRepeat()
      if !isRepeatRefused { transfer.timesSent += 1 }
    }
    (wasSent, isSending) = (true, true)
    return !isRepeatRefused
  }

  /// Called for each octet of a proxy's response to CONNECT, and now and then. Counts until the request is sent. Returns
  /// whether libcurl may go on.
  fileprivate func hasProgress() -> Bool { isSending || settings.mayStep() }

  fileprivate func openSocket(_ address: UnsafePointer<curl_sockaddr>) -> Int32 {
    opened = socketAddress(address)
    isSending = false
    if carrier.spareCount > 0, let opened, let spare = carrier.takeSpare(to: opened) {
      tookSpare = true
      return spare
    }
    tookSpare = false
    let address = address.pointee
    let descriptor = Glibc.socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
    if descriptor < 0 { socketError = errno }
    return descriptor
  }

  fileprivate func hasSocket(_ descriptor: Int32) -> Int32 {
    setUserTimeout(settings.options.userTimeout, descriptor)
    return tookSpare ? CURL_SOCKOPT_ALREADY_CONNECTED : CURL_SOCKOPT_OK
  }

  fileprivate func received(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
    carrier.isHeard()
    if let sink = settings.options.sink { return passed(octets, to: sink) }
    return transfer.note(partsFit: settings.mayStep()) && transfer.received(octets)
  }

  private func passed(_ octets: UnsafeBufferPointer<UInt8>, to sink: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    isContentUnread = easy.long(CURLINFO_RESPONSE_CODE) != 200
    return !isContentUnread && transfer.passed(octets, to: sink)
  }

  fileprivate func heard(_ comment: UnsafeBufferPointer<UInt8>) {
    let last = comment.count - connectionCalm.count
    guard last >= 0, !transfer.heardCalm else { return }
    transfer.heardCalm = (0...last).contains { comment[$0...].starts(with: connectionCalm) }
  }

  fileprivate func receivedHeader(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
    carrier.isHeard()
    guard transfer.note(headersFit: transfer.headers.take(line.span)) else { return false }
    return settings.options.sink == nil || transfer.note(codings: transfer.headers.codings)
  }
}

/// The end of libcurl's message about a stream that was reset with ENHANCE_YOUR_CALM.
private let streamCalm = "(err 11)"
/// A part of libcurl's log text about a GOAWAY with ENHANCE_YOUR_CALM; the word before it differs between versions.
private let connectionCalm = Array("GOAWAY, error=11,".utf8)
/// The start of libcurl's message about a transfer that failed in spite of retries.
private let repeatedInVain = "Connection died, tried "

private func handleWantsSocket(
  _ context: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue().openSocket(address!)
}

private func handleWillSend(
  _ context: UnsafeMutableRawPointer?, _: UnsafeMutablePointer<CChar>?, _: UnsafeMutablePointer<CChar>?, _: Int32,
  _: Int32
) -> Int32 {
  let handle = Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
  return handle.willSend() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}

private func handleHasProgress(
  _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
  Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue().hasProgress() ? 0 : 1
}

private func handleHasSocket(_ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _: curlsocktype) -> Int32 {
  Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue().hasSocket(descriptor)
}

/// libcurl's address, which is longer than the type of its member says.
private func socketAddress(_ address: UnsafePointer<curl_sockaddr>) -> SocketAddress? {
  guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
  let start = UnsafeRawPointer(address) + offset
  return SocketAddress(copying: UnsafeRawBufferPointer(start: start, count: Int(address.pointee.addrlen)))
}

/// Octets that libcurl owns, valid during its callback.
private func handedOver(_ octets: UnsafeMutablePointer<CChar>?, _ count: Int) -> UnsafeBufferPointer<UInt8> {
  UnsafeBufferPointer(start: UnsafeRawPointer(octets)?.assumingMemoryBound(to: UInt8.self), count: count)
}

private func handleDidReceiveBody(
  _ octets: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let handle = Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
  return handle.received(handedOver(octets, count)) ? count : 0
}

private func handleDidReceiveHeader(
  _ octets: UnsafeMutablePointer<CChar>?, _: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  let handle = Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
  return handle.receivedHeader(handedOver(octets, count)) ? count : 0
}

/// Ignores everything but log texts: libcurl also passes requests, which contain secrets.
private func handleWasCommented(
  _: UnsafeMutableRawPointer?, _ type: curl_infotype, _ octets: UnsafeMutablePointer<CChar>?, _ count: Int,
  _ context: UnsafeMutableRawPointer?
) -> Int32 {
  guard type == CURLINFO_TEXT else { return 0 }
  let handle = Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
  handle.heard(handedOver(octets, count))
  return 0
}
