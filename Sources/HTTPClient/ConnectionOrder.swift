// ConnectionOrder.swift -- at which of a server's addresses connections begin.

import CCurl
import EventLoop
import Glibc

/// The addresses of a server in the order in which connections try them. Generations share it until another address comes
/// first because it has answered. Loop thread only.
final class ConnectionOrder {
  /// The addresses of the families that may be used, at first alternately of both (RFC 8305 section 4).
  private(set) var addresses: [SocketAddress]
  /// `name:port:address,address`, which fills libcurl's DNS cache, so that it never resolves a name; nil behind a proxy and
  /// without addresses.
  private(set) var resolve: CurlList?
  /// Addresses that went behind others: they took a connection and did not answer, or took none.
  private(set) var silent: Set<SocketAddress> = []
  /// The address that answered last, and when.
  private var answered: (address: SocketAddress, at: BootInstant)?
  private let server: HTTPServerAddress
  private let hasProxy: Bool

  /// How long an address that has answered is not judged by requests without an answer.
  private static let proofTime = Duration.seconds(600)
  /// An answer within this time after the last one says nothing new about its address.
  private static let moment = Duration.seconds(1)

  init(_ server: HTTPServerAddress, _ addresses: [SocketAddress], hasProxy: Bool) {
    self.server = server
    self.addresses = addresses
    self.hasProxy = hasProxy
    fillResolve()
  }

  /// An order that begins at the next address that is not the first of `present`; nil without such an address.
  func next(besides present: ConnectionOrder) -> ConnectionOrder? {
    guard let address = addresses.dropFirst().first(where: { $0 != present.addresses.first }) else { return nil }
    let next = ConnectionOrder(server, addresses, hasProxy: hasProxy)
    next.silent = silent
    while next.addresses.first != address { _ = next.putFirstLast() }
    return next
  }

  /// A request has been answered, at the address that `address` gives.
  func isAnswered(at now: BootInstant, by address: @autoclosure () -> SocketAddress?) {
    guard addresses.count > 1 || !silent.isEmpty, answered.map({ now - $0.at >= Self.moment }) ?? true,
      let address = address()
    else { return }
    answered = (address, now)
    silent.remove(address)
  }

  /// Whether a request without an answer says nothing about an address, which has answered others lately.
  func isProven(_ address: SocketAddress, at now: BootInstant) -> Bool {
    answered.map { $0.address == address && now - $0.at < Self.proofTime } ?? false
  }

  /// Lets the address that is tried first go behind the others.
  func putFirstLast() -> Bool { addresses.first.map { putLast($0) } ?? false }

  /// Lets an address that took a connection and did not answer go behind the others, also for later connections.
  ///
  /// - Returns: whether another address comes first now.
  func putLast(_ address: SocketAddress) -> Bool {
    silent.insert(address)
    guard addresses.count > 1, let place = addresses.firstIndex(of: address) else { return false }
    addresses.append(addresses.remove(at: place))
    fillResolve()
    return place == 0
  }

  private func fillResolve() {
    guard !hasProxy, !addresses.isEmpty else { return }
    let hosts = addresses.map { bracketed($0.host) }.joined(separator: ",")
    resolve = CurlList(["\(server.nameForCurl):\(server.port):\(hosts)"])
  }
}

extension HTTPServerAddress {
  /// The name under which libcurl's DNS cache has the server: it takes no entry for an IPv6 literal.
  var nameForCurl: String { HTTPServerAddress.family(of: name) == AF_INET6 ? "origin.invalid" : name }
}

func bracketed(_ literal: String) -> String { literal.contains(":") ? "[\(literal)]" : literal }
