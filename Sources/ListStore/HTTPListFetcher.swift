// HTTPListFetcher.swift -- fetches a list over HTTP: looks up its host by our own providers, and follows redirects.
//
// Resolver's loop only; each exchange has a thread and a loop of its own (ListTransfer.swift).

import DNSWire
import EventLoop
import HTTPClient
import HTTPMessage

/// Fetches lists over HTTP.
public final class HTTPListFetcher: ListFetching {
  /// Finds the addresses of a host, and those by which an address is reached. It must not depend on lists, and ends within
  /// seconds.
  public typealias Resolve = (_ host: String) async -> [IPAddress]

  /// How long a fetch may take.
  struct Limits: Sendable {
    /// Without a further octet.
    var silence = Duration.seconds(30)
    /// In all, redirects included.
    var total = Duration.seconds(300)
  }

  private let loop: any Loop
  private let clock: CertificateClock?
  private let resolve: Resolve
  private let limits: Limits
  private var transfer: ListTransfer?
  private var isCancelled = false

  private static let mostRedirects = 5
  private static let longestRetryAfter = Duration.seconds(86_400)

  /// - Parameters:
  ///   - clock: the time for certificates; nil for the system's.
  ///   - resolve: called on the loop.
  public convenience init(on loop: any Loop, clock: CertificateClock?, resolve: @escaping Resolve) {
    self.init(on: loop, clock: clock, limits: Limits(), resolve: resolve)
  }

  init(on loop: any Loop, clock: CertificateClock?, limits: Limits, resolve: @escaping Resolve) {
    (self.loop, self.clock, self.limits, self.resolve) = (loop, clock, limits, resolve)
  }

  public func cancel() {
    loop.assertCurrent()
    isCancelled = true
    transfer?.cancel()
  }

  public nonisolated(nonsending) func fetch(
    _ request: ListRequest, take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async -> ListReply {
    loop.assertCurrent()
    isCancelled = false
    guard case .url(let text) = request.source.place, let first = ListURL(text) else {
      return .fault(.unacceptable("not an http or https URL"), retryAfter: nil)
    }
    let deadline = loop.now + limits.total
    var url = first
    for _ in 0...HTTPListFetcher.mostRedirects {
      let server: HTTPServerAddress
      switch await address(of: url, proxy: request.source.proxy) {
      case .success(let found): server = found
      case .failure(let fault): return .fault(fault, retryAfter: nil)
      }
      guard !isCancelled else { return .fault(.cancelled, retryAfter: nil) }
      let result = await exchange(request, server, url, first, until: deadline, take)
      guard !isCancelled else { return .fault(.cancelled, retryAfter: nil) }
      let isElsewhere = !url.isAtServer(of: first)
      func explained(_ reason: String) -> String { isElsewhere ? "\(shortened(url.shown)): \(reason)" : reason }
      switch result {
      case .failure(let failure) where failure.kind == .tooLarge:
        return .fault(.tooLarge(request.source.maxSize), retryAfter: nil)
      case .failure(let failure):
        // The description may repeat the host's name.
        let reason = isElsewhere ? failure.kind.rawValue : failure.description
        return .fault(.failed(explained(reason)), retryAfter: nil)
      case .response(let response):
        switch response.status {
        case 200: return .complete(entityTag: response.entityTag, lastModified: response.lastModified)
        case 304 where request.entityTag != nil || request.lastModified != nil: return .unchanged
        case 301, 302, 303, 307, 308:
          guard let location = response.location, let next = url.following(location) else {
            return .fault(.unacceptable(explained("a redirect that leads nowhere")), retryAfter: nil)
          }
          guard url.scheme == .http || next.scheme == .https else {
            return .fault(.unacceptable("a redirect from https to \(shortened(next.shown))"), retryAfter: nil)
          }
          url = next
        case let status:
          return .fault(
            .failed(explained("status \(status)")),
            retryAfter: response.retryAfter.map { min($0, HTTPListFetcher.longestRetryAfter) })
        }
      }
    }
    return .fault(.unacceptable("more than \(HTTPListFetcher.mostRedirects) redirects"), retryAfter: nil)
  }

  /// A proxy looks a name up itself, unless it cannot, and reaches addresses in its own way.
  private func address(of url: ListURL, proxy: String) async -> Result<HTTPServerAddress, ListFault> {
    let malformed = ListFault.unacceptable("the host \(shortened(url.host)) is malformed")
    let literal = IPAddress(text: url.host)
    if literal == nil, !proxy.isEmpty, !proxy.hasPrefix("socks5:") {
      let server = HTTPServerAddress(scheme: url.scheme, name: url.host, proxiedHost: url.host, port: url.port)
      return server.map { .success($0) } ?? .failure(malformed)
    }
    var addresses: [IPAddress] = []
    if let literal, !proxy.isEmpty { addresses = [literal] } else { addresses = await resolve(url.host) }
    guard !addresses.isEmpty else { return .failure(.failed("no address of \(shortened(url.host)) was found")) }
    let server = HTTPServerAddress(
      scheme: url.scheme, name: url.host, addresses: addresses.map(\.description), port: url.port)
    return server.map { .success($0) } ?? .failure(malformed)
  }

  private func exchange(
    _ request: ListRequest, _ server: HTTPServerAddress, _ url: ListURL, _ first: ListURL, until deadline: BootInstant,
    _ take: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool
  ) async -> HTTPResult {
    var fields = [HTTPField("User-Agent", "httpdnsd"), HTTPField("Accept", "text/plain, */*")]
    // Not to another server, which has not been given them.
    if !first.user.isEmpty, url.isAtServer(of: first) {
      fields.append(HTTPField("Authorization", "Basic \(Base64.encode(first.user))"))
    }
    if let tag = request.entityTag { fields.append(HTTPField("If-None-Match", tag)) }
    if let date = request.lastModified { fields.append(HTTPField("If-Modified-Since", date)) }
    var options = HTTPClientOptions()
    options.caFile = request.source.caFile
    options.proxy = request.source.proxy
    options.usesHTTP2 = false
    options.maxConnections = 1
    options.certificateClock = clock
    options.sink = take
    let transfer = ListTransfer(
      server, HTTPRequest(target: url.target, fields: fields), options, silence: limits.silence,
      total: max(.milliseconds(1), deadline - loop.now))
    self.transfer = transfer
    defer { self.transfer = nil }
    return await transfer.result(on: loop)
  }
}
