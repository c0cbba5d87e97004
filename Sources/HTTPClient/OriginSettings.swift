// OriginSettings.swift -- what all transfers to one server share: trust, TLS sessions, header lists.

import CCurl
import CTLS
import EventLoop
import Glibc
import HTTPMessage
import Streams

/// The constants of an origin, in the forms of libcurl and OpenSSL. Must outlive every handle that uses it; loop thread only.
final class OriginSettings {
  let server: HTTPServerAddress
  let options: HTTPClientOptions
  /// The trusted certificates; nil without TLS.
  let trust: TrustStore?
  /// TLS sessions, to resume them on a new connection, also of a later generation.
  let share: OpaquePointer
  /// The host and port to connect to instead of those in the URL.
  let connectTo: CurlList?
  /// The server's URL, parsed once. Given as text, libcurl would parse and compose it for each transfer, which is a
  /// fifth of its work per transfer.
  let url: OpaquePointer
  /// The pins in libcurl's form; empty for none.
  let pins: String

  /// The server's addresses of the families that may be used, alternately of both (RFC 8305 section 4).
  let addresses: [SocketAddress]
  /// When the last octet of HTTP arrived, or the last handshake succeeded.
  private(set) var heardAt = BootInstant(nanoseconds: .min)
  /// When the last request was answered.
  var answeredAt = BootInstant(nanoseconds: .min)
  /// How TLS connections are opened without libcurl; nil if libcurl carries all transfers.
  let tls: TLSClient?
  /// Whether the server was found not to speak HTTP/2, so that libcurl carries its transfers.
  var lacksHTTP2 = false
  /// Whether HTTP/2 streams carry transfers, and not libcurl.
  var carriesStreams: Bool { tls != nil && !lacksHTTP2 }

  /// The octets that the current call of libcurl may still read over TLS. OpenSSL's callbacks of its connections hold this
  /// pointer.
  let octetsLeft = UnsafeMutablePointer<UInt32>.allocate(capacity: 1)
  /// How many steps the current call of libcurl may still take. A step is an octet of a proxy's response to CONNECT, which
  /// libcurl reads one by one until none is left, or a part of a response's content, such as a chunk, of which it reads up
  /// to a hundred buffers.
  private var stepsLeft = 0
  private static let mostSteps = 4096

  private var knownFields: [RequestFields] = []
  /// Maximum different arrays of header fields that are stored in their composed form.
  private static let knownFieldsLimit = 8
  /// libcurl's global initialisation; it creates no thread and no socket.
  private static let started: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

  init(_ server: HTTPServerAddress, _ options: HTTPClientOptions) throws(HTTPSetupError) {
    guard Self.started == CURLE_OK, let share = curl_share_init(), let url = curl_url() else {
      throw HTTPSetupError(description: "libcurl could not be started")
    }
    self.share = OpaquePointer(share)
    self.url = url
    ctls_begin_call(octetsLeft)
    _ = ccurl_share_setopt_long(share, CURLSHOPT_SHARE, Int(CURL_LOCK_DATA_SSL_SESSION.rawValue))
    self.server = server
    self.options = options
    pins = options.pins.joined(separator: ";")
    let family = options.family == .ipv4 ? AF_INET : AF_INET6
    let usable = server.addresses.filter { options.family == .any || HTTPServerAddress.family(of: $0) == family }
    if options.proxy.isEmpty {
      let isAlias = !usable.isEmpty && server.nameForCurl != server.name
      connectTo = isAlias ? CurlList(["::\(server.nameForCurl):\(server.port)"]) : nil
      isReachable = !usable.isEmpty
    } else {
      // Pass an address to the proxy if there is one: the proxy might resolve a name through this daemon.
      let host = usable.first ?? server.proxiedHost
      connectTo = host.map { CurlList(["::\(bracketed($0)):\(server.port)"]) }
      isReachable = host != nil
    }
    let known = usable.compactMap { SocketAddress(text: "\(bracketed($0)):\(server.port)") }
    // NAT64 may lead two addresses to the same one.
    addresses = alternating(known.reduce(into: []) { if !$0.contains($1) { $0.append($1) } })
    do throws(HTTPSetupError) {
      guard curl_url_set(url, CURLUPART_URL, server.rootURL, 0) == CURLUE_OK else {
        throw HTTPSetupError(description: "\(server): not a URL that libcurl takes")
      }
      try checkProxy(options.proxy)
      try checkPins(options.pins)
      trust = server.scheme == .https || options.proxy.hasPrefix("https:") ? try trustStore(options.caFile) : nil
      let isForStreams = server.scheme == .https && options.proxy.isEmpty && options.usesHTTP2 && !options.carriesByCurl
      tls = if isForStreams, let trust { try tlsClient(server.name, trust) } else { nil }
    } catch {
      curl_share_cleanup(share)
      curl_url_cleanup(url)
      octetsLeft.deallocate()
      throw error
    }
  }

  deinit {
    curl_share_cleanup(UnsafeMutableRawPointer(share))
    curl_url_cleanup(url)
    octetsLeft.deallocate()
  }

  /// Whether a key is one of the pins, or there are none.
  ///
  /// - Parameter digest: the key's SHA-256 digest in base64; nil without a key.
  func fitsPins(_ digest: @autoclosure () -> String?) -> Bool {
    options.pins.isEmpty || digest().map { options.pins.contains(pinPrefix + $0) } ?? false
  }

  /// To be called before each call of libcurl that may read.
  func beginCallOfCurl() {
    ctls_begin_call(octetsLeft)
    stepsLeft = options.sink == nil ? Self.mostSteps : .max
  }

  /// libcurl takes a step. Returns whether its call may go on.
  func mayStep() -> Bool {
    stepsLeft -= 1
    return stepsLeft >= 0
  }

  /// Whether there is an address of an allowed family, or a host name for the proxy.
  let isReachable: Bool

  /// Something came from the server.
  func isHeard(at now: BootInstant) { heardAt = now }

  /// Returns the composed form of header fields, which is made once for each different array; nil if a field is
  /// malformed.
  func fields(_ fields: [HTTPField]) -> RequestFields? {
    if let known = knownFields.first(where: { $0.fields == fields }) { return known }
    for field in fields where !isFieldText(field.name) || !isFieldText(field.value) || field.name.isEmpty { return nil }
    let composed = RequestFields(fields, to: server)
    if knownFields.count == Self.knownFieldsLimit { knownFields.removeFirst() }
    knownFields.append(composed)
    return composed
  }
}

private func trustStore(_ file: String) throws(HTTPSetupError) -> TrustStore {
  do throws(TrustFailure) {
    return try .load(extra: file)
  } catch {
    switch error {
    case .noMemory: throw HTTPSetupError(description: "no memory for certificates")
    case .noCertificate: throw HTTPSetupError(description: "certificates \(file): no certificate (PEM) in it")
    case .unreadable(let code):
      throw HTTPSetupError(description: "certificates \(file): \(String(cString: strerror(code)))")
    }
  }
}

private func tlsClient(_ name: String, _ trust: TrustStore) throws(HTTPSetupError) -> TLSClient {
  guard let client = TLSClient(name, trust, protocols: HTTP2Connection.protocols, resumes: true) else {
    throw HTTPSetupError(description: "no memory for TLS")
  }
  return client
}

/// Addresses of both families in turn, each family in its order, beginning with that of the first.
private func alternating(_ addresses: [SocketAddress]) -> [SocketAddress] {
  var first = addresses.filter { $0.family == addresses.first?.family }[...]
  var second = addresses.filter { $0.family != addresses.first?.family }[...]
  var result: [SocketAddress] = []
  while let next = first.popFirst() ?? second.popFirst() {
    result.append(next)
    if let other = second.popFirst() { result.append(other) }
  }
  return result
}

/// Whether a text is allowed in a header field: printable ASCII and spaces, so that it cannot contain a second field.
private func isFieldText(_ text: String) -> Bool { text.utf8.allSatisfy { (0x20...0x7E).contains($0) } }

/// Refuses a proxy whose name libcurl would have to resolve.
private func checkProxy(_ proxy: String) throws(HTTPSetupError) {
  guard !proxy.isEmpty else { return }
  let url = curl_url()
  defer { curl_url_cleanup(url) }
  var host: UnsafeMutablePointer<CChar>?
  guard curl_url_set(url, CURLUPART_URL, proxy, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK,
    curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK, let host
  else { throw HTTPSetupError(description: "proxy: not a URL such as http://192.0.2.1:3128") }
  defer { curl_free(host) }
  var text = String(cString: host)
  if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
  guard HTTPServerAddress.family(of: text) != nil else {
    throw HTTPSetupError(description: "proxy: its host must be an address, names are not looked up")
  }
}

/// The prefix of a pin, as in libcurl.
private let pinPrefix = "sha256//"

/// Refuses pins that libcurl would interpret as the name of a key file.
private func checkPins(_ pins: [String]) throws(HTTPSetupError) {
  for pin in pins {
    let digest = pin.utf8.dropFirst(pinPrefix.utf8.count)
    // 32 octets in Base64: 43 digits and one padding character.
    let isDigest = digest.count == 44 && digest.last == UInt8(ascii: "=") && digest.dropLast().allSatisfy(isBase64Digit)
    guard pin.hasPrefix(pinPrefix), isDigest else {
      throw HTTPSetupError(description: "pin \(pin): must be sha256// and a SHA-256 digest in base64")
    }
  }
}

private func isBase64Digit(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
    true
  default: false
  }
}
