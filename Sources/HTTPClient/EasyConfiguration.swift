// EasyConfiguration.swift -- the options of an easy handle that are the same for all transfers to a server.

import CCurl
import CTLS
import EventLoop
import Glibc
import Streams

/// An easy handle of libcurl.
typealias Easy = UnsafeMutableRawPointer

extension Easy {
  // With a known option and a value of its type, libcurl fails only when it is out of memory.
  func set(_ option: CURLoption, _ value: Int) { _ = ccurl_setopt_long(self, option, value) }
  func set(_ option: CURLoption, _ value: String?) { _ = ccurl_setopt_string(self, option, value) }
  func set(_ option: CURLoption, _ value: UnsafeRawPointer?) { _ = ccurl_setopt_pointer(self, option, value) }

  /// A number that libcurl reports about the last transfer; 0 if it has none.
  func long(_ info: CURLINFO) -> Int {
    var value = 0
    return ccurl_getinfo_long(self, info, &value) == CURLE_OK ? value : 0
  }

  /// A text that libcurl reports about the last transfer; empty if it has none.
  func string(_ info: CURLINFO) -> String {
    var value: UnsafePointer<CChar>?
    guard ccurl_getinfo_string(self, info, &value) == CURLE_OK, let value else { return "" }
    return String(cString: value)
  }

  /// What a proxy's response to CONNECT says, after libcurl ended a transfer or a handshake with this code; nil if that does
  /// not tell why.
  func proxyFailure(_ code: CURLcode) -> HTTPFailure? {
    // 0 without a proxy, and before its status line.
    let status = long(CURLINFO_HTTP_CONNECTCODE)
    if status != 0, status / 100 != 2 { return HTTPFailure(.proxy, "the proxy answers CONNECT with status \(status)") }
    return code == CURLE_ABORTED_BY_CALLBACK
      ? HTTPFailure(.proxy, "too much comes before the request can be sent") : nil
  }
}

/// Octets that the buffer of a transfer over HTTP/2 has beyond the longest content: one frame. libcurl 7.88 pauses a
/// transfer whose content does not fit together with its connection, and does not resume all of them.
private let bufferMargin = 16_384
/// The smallest buffer that libcurl takes: it reads up to a hundred in one call.
private let smallestBuffer = 1024
/// The largest buffer that libcurl 7.88 accepts.
private let largestBuffer = 512 * 1024

/// Configures a new handle. libcurl passes `carrier` to the callback that closes a socket.
func configure(_ easy: Easy, _ settings: OriginSettings, _ order: ConnectionOrder, carrier: UnsafeMutableRawPointer) {
  let options = settings.options
  easy.set(CURLOPT_CURLU, UnsafeRawPointer(settings.url))
  easy.set(CURLOPT_PROTOCOLS_STR, settings.server.scheme.rawValue)
  easy.set(CURLOPT_PATH_AS_IS, 1)
  easy.set(CURLOPT_HTTPGET, 1)
  easy.set(CURLOPT_FOLLOWLOCATION, 0)
  // CURL_NETRC_IGNORED: an enumeration in libcurl 7.88, a macro in 8.14.
  easy.set(CURLOPT_NETRC, 0)
  easy.set(CURLOPT_HTTP_CONTENT_DECODING, options.sink == nil ? 0 : 1)
  if options.sink != nil { easy.set(CURLOPT_ACCEPT_ENCODING, "gzip") }
  easy.set(CURLOPT_HTTP09_ALLOWED, 0)
  easy.set(CURLOPT_SHARE, UnsafeRawPointer(settings.share))
  // The loop has the timers, so that libcurl needs no signals.
  easy.set(CURLOPT_NOSIGNAL, 1)
  // An empty proxy and a full exception list override the environment.
  easy.set(CURLOPT_PROXY, options.proxy)
  easy.set(CURLOPT_NOPROXY, options.proxy.isEmpty ? "*" : "")
  easy.set(CURLOPT_HTTPPROXYTUNNEL, 1)
  // With GSS-API, which is on by default, Kerberos would look the proxy's name up, and wait for that.
  easy.set(CURLOPT_SOCKS5_AUTH, 1)
  easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
  easy.set(CURLOPT_NOPROGRESS, options.proxy.isEmpty ? 1 : 0)
  configureConnection(easy, settings, order)
  if settings.trust != nil { configureTLS(easy, settings) }
  easy.set(CURLOPT_CLOSESOCKETDATA, carrier)
  _ = ccurl_setopt_closesocket_callback(easy, carrierSocketWillClose)
}

private func configureConnection(_ easy: Easy, _ settings: OriginSettings, _ order: ConnectionOrder) {
  if let resolve = order.resolve {
    easy.set(CURLOPT_RESOLVE, resolve.head)
    _ = ccurl_setopt_resolver_callback(easy, lookUpWouldStart)
  }
  if let connectTo = settings.connectTo { easy.set(CURLOPT_CONNECT_TO, connectTo.head) }
  easy.set(CURLOPT_HAPPY_EYEBALLS_TIMEOUT_MS, Int(Connector.longestDelay.nanoseconds / 1_000_000))
  easy.set(CURLOPT_MAXLIFETIME_CONN, max(1, Int(settings.options.maxAge.components.seconds)))
  easy.set(CURLOPT_TCP_NODELAY, 1)
  easy.set(CURLOPT_TCP_KEEPALIVE, 1)
  easy.set(CURLOPT_TCP_KEEPIDLE, Int(Connector.keepAliveIdle))
  easy.set(CURLOPT_TCP_KEEPINTVL, Int(Connector.keepAliveInterval))
  switch settings.server.scheme {
  case .http:
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    if settings.options.sink == nil { easy.set(CURLOPT_BUFFERSIZE, smallestBuffer) }
  case .https where !settings.options.usesHTTP2: easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
  case .https:
    easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    easy.set(CURLOPT_BUFFERSIZE, min(settings.options.maxBody + bufferMargin, largestBuffer))
    // The first burst waits until one connection reports whether it can multiplex.
    easy.set(CURLOPT_PIPEWAIT, 1)
  }
}

private func configureTLS(_ easy: Easy, _ settings: OriginSettings) {
  easy.set(CURLOPT_SSL_VERIFYPEER, 1)
  easy.set(CURLOPT_SSL_VERIFYHOST, 2)
  easy.set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
  // The context's callback sets the certificates; libcurl reads none.
  easy.set(CURLOPT_CAINFO, nil as String?)
  easy.set(CURLOPT_CAPATH, nil as String?)
  _ = ccurl_setopt_ssl_ctx_callback(easy, contextWasMade)
  easy.set(CURLOPT_SSL_CTX_DATA, Unmanaged.passUnretained(settings).toOpaque())
  if !settings.pins.isEmpty { easy.set(CURLOPT_PINNEDPUBLICKEY, settings.pins) }
}

/// libcurl is about to resolve a name that is not in its cache. Refused, because the machine's resolver may be this
/// daemon.
private func lookUpWouldStart(
  _: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?, _: UnsafeMutableRawPointer?
) -> Int32 { 1 }

private func contextWasMade(
  _: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ settings: UnsafeMutableRawPointer?
) -> CURLcode {
  let settings = Unmanaged<OriginSettings>.fromOpaque(settings!).takeUnretainedValue()
  if let context { ctls_bound_calls(context, settings.octetsLeft) }
  if let trust = settings.trust { ctls_context_trust(context, UnsafeMutableRawPointer(trust.store)) }
  if let time = settings.options.certificateClock?.checkTime(now: .now) { ctls_context_set_time(context, time) }
  return CURLE_OK
}
