// OriginSettings.swift -- what all transfers to one server share: addresses, trust, TLS sessions, header lists.

import CCurl
import EventLoop
import Glibc

/// A list of libcurl's, owned.
final class CurlList {
  /// The head; nil for an empty list.
  private(set) var head: UnsafeMutablePointer<curl_slist>?

  /// A list of those lines; libcurl copies them.
  init(_ lines: [String]) { for line in lines { head = curl_slist_append(head, line) } }

  deinit { curl_slist_free_all(head) }
}

/// The constants of an origin in libcurl's form. Outlives every handle that was made with it; loop thread only.
final class OriginSettings {
  let server: HTTPServerAddress
  let options: HTTPClientOptions
  /// The certificates that are trusted; nil without TLS.
  let trust: TrustStore?
  /// TLS sessions, for resumption on a new connection, also of a later generation.
  let share: OpaquePointer
  /// `name:port:address,address`, which puts the addresses into libcurl's cache: it never looks anything up.
  let resolve: CurlList?
  /// Where to connect instead of where the URL says.
  let connectTo: CurlList?
  /// The server's URL, parsed once: given as text, libcurl would parse it and write it again for each transfer, which is
  /// a fifth of what it does for one.
  let url: OpaquePointer
  /// The pins in libcurl's form, empty for none.
  let pins: String

  private var headerLists: [(fields: [HTTPField], list: CurlList)] = []
  /// Different arrays of header fields that are kept in libcurl's form.
  private static let headerListLimit = 8
  /// libcurl's library-wide start; it makes no thread and no socket.
  private static let started: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

  init(_ server: HTTPServerAddress, _ options: HTTPClientOptions) throws(HTTPSetupError) {
    guard Self.started == CURLE_OK, let share = curl_share_init(), let url = curl_url() else {
      throw HTTPSetupError(description: "libcurl could not be started")
    }
    self.share = OpaquePointer(share)
    self.url = url
    _ = ccurl_share_setopt_long(share, CURLSHOPT_SHARE, Int(CURL_LOCK_DATA_SSL_SESSION.rawValue))
    self.server = server
    self.options = options
    pins = options.pins.joined(separator: ";")
    let family = options.family == .ipv4 ? AF_INET : AF_INET6
    let usable = server.addresses.filter { options.family == .any || HTTPServerAddress.family(of: $0) == family }
    if options.proxy.isEmpty {
      (resolve, connectTo) = usable.isEmpty ? (nil, nil) : Self.route(server, usable)
      isReachable = !usable.isEmpty
    } else {
      // A proxy is told the address where there is one, or it would ask for the name: perhaps us.
      let host = usable.first ?? server.proxiedHost
      connectTo = host.map { CurlList(["::\(bracketed($0)):\(server.port)"]) }
      resolve = nil
      isReachable = host != nil
    }
    do throws(HTTPSetupError) {
      guard curl_url_set(url, CURLUPART_URL, server.rootURL, 0) == CURLUE_OK else {
        throw HTTPSetupError(description: "\(server): not a URL that libcurl takes")
      }
      try checkProxy(options.proxy)
      try checkPins(options.pins)
      trust = server.scheme == .https || options.proxy.hasPrefix("https:") ? try .load(extra: options.caFile) : nil
    } catch {
      curl_share_cleanup(share)
      curl_url_cleanup(url)
      throw error
    }
  }

  deinit {
    curl_share_cleanup(UnsafeMutableRawPointer(share))
    curl_url_cleanup(url)
  }

  /// Whether an address is left when the family is regarded.
  let isReachable: Bool

  /// The header fields in libcurl's form, made once for each different array.
  func headerList(_ fields: [HTTPField]) -> CurlList? {
    if let known = headerLists.first(where: { $0.fields == fields }) { return known.list }
    for field in fields where !isFieldText(field.name) || !isFieldText(field.value) || field.name.isEmpty { return nil }
    let list = CurlList(fields.map { "\($0.name): \($0.value)" })
    if headerLists.count == Self.headerListLimit { headerLists.removeFirst() }
    headerLists.append((fields, list))
    return list
  }

  private static func route(_ server: HTTPServerAddress, _ usable: [String]) -> (CurlList?, CurlList?) {
    let addresses = usable.map(bracketed).joined(separator: ",")
    guard HTTPServerAddress.family(of: server.name) == AF_INET6 else {
      return (CurlList(["\(server.name):\(server.port):\(addresses)"]), nil)
    }
    // An entry of libcurl's cache cannot be for an IPv6 literal, so the connection goes to a name that can.
    let alias = "origin.invalid"
    return (CurlList(["\(alias):\(server.port):\(addresses)"]), CurlList(["::\(alias):\(server.port)"]))
  }
}

private func bracketed(_ literal: String) -> String { literal.contains(":") ? "[\(literal)]" : literal }

/// Whether a text may stand in a header field: printable ASCII and spaces, so no second field can hide in it.
private func isFieldText(_ text: String) -> Bool { text.utf8.allSatisfy { (0x20...0x7E).contains($0) } }

/// Refuses a proxy that libcurl would have to look up.
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

/// Refuses what libcurl would take for the name of a key file.
private func checkPins(_ pins: [String]) throws(HTTPSetupError) {
  let prefix = "sha256//"
  for pin in pins {
    let digest = pin.utf8.dropFirst(prefix.utf8.count)
    // 32 octets in base64: 43 digits and one sign of filling.
    let isDigest = digest.count == 44 && digest.last == UInt8(ascii: "=") && digest.dropLast().allSatisfy(isBase64Digit)
    guard pin.hasPrefix(prefix), isDigest else {
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
