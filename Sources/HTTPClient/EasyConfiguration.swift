// EasyConfiguration.swift -- everything of an easy handle that is the same for every transfer to a server.

import CCurl
import EventLoop
import Glibc

/// An easy handle.
typealias Easy = UnsafeMutableRawPointer

extension Easy {
  // A known option with a value of its type is refused only where memory has run out.
  func set(_ option: CURLoption, _ value: Int) { _ = ccurl_setopt_long(self, option, value) }
  func set(_ option: CURLoption, _ value: String?) { _ = ccurl_setopt_string(self, option, value) }
  func set(_ option: CURLoption, _ value: UnsafeRawPointer?) { _ = ccurl_setopt_pointer(self, option, value) }

  /// A number that libcurl tells of the last transfer; 0 where it has none.
  func long(_ info: CURLINFO) -> Int {
    var value = 0
    return ccurl_getinfo_long(self, info, &value) == CURLE_OK ? value : 0
  }

  /// A duration in microseconds that libcurl tells of the transfer; 0 where it has none yet.
  func microseconds(_ info: CURLINFO) -> Int {
    var value: curl_off_t = 0
    return ccurl_getinfo_offset(self, info, &value) == CURLE_OK ? Int(value) : 0
  }

  /// A text that libcurl tells of the last transfer; empty where it has none.
  func string(_ info: CURLINFO) -> String {
    var value: UnsafePointer<CChar>?
    guard ccurl_getinfo_string(self, info, &value) == CURLE_OK, let value else { return "" }
    return String(cString: value)
  }
}

/// How much more than the longest content a transfer's buffer holds: one HTTP/2 frame. A transfer of libcurl 7.88 whose
/// content does not fit is paused together with its connection, and not all of them are woken again.
private let bufferMargin = 16_384
/// The largest buffer that libcurl 7.88 takes.
private let largestBuffer = 512 * 1024
/// How much later than the first address family the second is tried (RFC 8305 section 5).
private let happyEyeballsDelay = 250

/// Configures a new handle. `generation` is told when a socket is closed.
func configure(_ easy: Easy, _ settings: OriginSettings, generation: UnsafeMutableRawPointer) {
  let options = settings.options
  easy.set(CURLOPT_CURLU, UnsafeRawPointer(settings.url))
  easy.set(CURLOPT_PROTOCOLS_STR, settings.server.scheme.rawValue)
  easy.set(CURLOPT_PATH_AS_IS, 1)
  easy.set(CURLOPT_HTTPGET, 1)
  easy.set(CURLOPT_FOLLOWLOCATION, 0)
  // CURL_NETRC_IGNORED: an enumeration in libcurl 7.88, a macro in 8.14.
  easy.set(CURLOPT_NETRC, 0)
  easy.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
  easy.set(CURLOPT_HTTP09_ALLOWED, 0)
  easy.set(CURLOPT_SHARE, UnsafeRawPointer(settings.share))
  // Timers are the loop's; signals are nobody's.
  easy.set(CURLOPT_NOSIGNAL, 1)
  easy.set(CURLOPT_BUFFERSIZE, min(options.maxBody + bufferMargin, largestBuffer))
  // An empty proxy and a full exception list shut the environment out.
  easy.set(CURLOPT_PROXY, options.proxy)
  easy.set(CURLOPT_NOPROXY, options.proxy.isEmpty ? "*" : "")
  easy.set(CURLOPT_HTTPPROXYTUNNEL, 1)
  easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
  configureConnection(easy, settings)
  if settings.trust != nil { configureTLS(easy, settings) }
  easy.set(CURLOPT_SOCKOPTDATA, Unmanaged.passUnretained(settings).toOpaque())
  _ = ccurl_setopt_sockopt_callback(easy, socketWasMade)
  easy.set(CURLOPT_CLOSESOCKETDATA, generation)
  _ = ccurl_setopt_closesocket_callback(easy, generationSocketWillClose)
}

private func configureConnection(_ easy: Easy, _ settings: OriginSettings) {
  if let resolve = settings.resolve {
    easy.set(CURLOPT_RESOLVE, resolve.head)
    _ = ccurl_setopt_resolver_callback(easy, lookUpWouldStart)
  }
  if let connectTo = settings.connectTo { easy.set(CURLOPT_CONNECT_TO, connectTo.head) }
  easy.set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, happyEyeballsDelay)
  easy.set(CURLOPT_MAXLIFETIME_CONN, max(1, Int(settings.options.maxAge.components.seconds)))
  easy.set(CURLOPT_TCP_NODELAY, 1)
  easy.set(CURLOPT_TCP_KEEPALIVE, 1)
  easy.set(CURLOPT_TCP_KEEPIDLE, 30)
  easy.set(CURLOPT_TCP_KEEPINTVL, 10)
  switch settings.server.scheme {
  case .http: easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
  case .https where !settings.options.usesHTTP2: easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
  case .https:
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    // The first burst waits for one connection to say that it takes many transfers.
    easy.set(CURLOPT_PIPEWAIT, 1)
  }
}

private func configureTLS(_ easy: Easy, _ settings: OriginSettings) {
  easy.set(CURLOPT_SSL_VERIFYPEER, 1)
  easy.set(CURLOPT_SSL_VERIFYHOST, 2)
  easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
  // The context's callback brings the certificates; libcurl reads none.
  easy.set(CURLOPT_CAINFO, nil as String?)
  easy.set(CURLOPT_CAPATH, nil as String?)
  _ = ccurl_setopt_ssl_ctx_callback(easy, contextWasMade)
  easy.set(CURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(settings).toOpaque())
  if !settings.pins.isEmpty { easy.set(CURLOPT_PINNEDPUBLICKEY, settings.pins) }
}

/// libcurl found no entry in its cache and would look one up: on the machine whose nameserver this is, it would ask us.
private func lookUpWouldStart(
  _: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?
) -> Int32 { 1 }

private func contextWasMade(
  _: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ settings: UnsafeMutableRawPointer?
) -> CURLcode {
  let settings = Unmanaged<OriginSettings>.fromOpaque(settings!).takeUnretainedValue()
  if let trust = settings.trust { ccurl_context_trust(context, UnsafeMutableRawPointer(trust.store)) }
  if let time = settings.options.certificateClock?.checkTime(now: .now) { ccurl_context_set_time(context, time) }
  return CURLE_OK
}

private func socketWasMade(_ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _: curlsocktype) -> Int32 {
  let settings = Unmanaged<OriginSettings>.fromOpaque(context!).takeUnretainedValue()
  // Octets that nobody acknowledges mean that the way is gone: the kernel would go on for a quarter of an hour.
  var milliseconds = UInt32(clamping: settings.options.userTimeout.nanoseconds / 1_000_000)
  setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
  return CURL_SOCKOPT_OK
}
