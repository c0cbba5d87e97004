// JSONDialect.swift -- the JSON services of Google, Cloudflare and doh.pub, and others of that form.

import DNSWire

/// GET with a name and a type, JSON back. The services share the reply's form and differ in what a request may hold.
public struct JSONDialect: Dialect {
  /// What a service is known to understand.
  public enum Flavour: Hashable, Sendable {
    /// dns.google: subnets and padding (developers.google.com/speed/public-dns/docs/doh/json).
    case google
    /// Cloudflare (developers.cloudflare.com, "DNS over HTTPS", "Using JSON"): neither subnets nor padding.
    case cloudflare
    /// Any other service, doh.pub among them: subnets as Google has them; the reply need not repeat the question.
    case generic

    /// The flavour of the service at a host name or address and a path.
    public init(host: String, path: String) {
      let host = host.lowercased()
      let isResolve = path.prefix { $0 != "?" } == "/resolve"
      if ["dns.google", "dns64.dns.google"].contains(host) || isResolve && Flavour.googleAddresses.contains(host) {
        self = .google
      } else if host == "cloudflare-dns.com" || host.hasSuffix(".cloudflare-dns.com")
        || Flavour.cloudflareAddresses.contains(host)
      {
        self = .cloudflare
      } else {
        self = .generic
      }
    }

    private static let googleAddresses = [
      "8.8.8.8", "8.8.4.4", "[2001:4860:4860::8888]", "[2001:4860:4860::8844]", "2001:4860:4860::8888",
      "2001:4860:4860::8844",
    ]
    private static let cloudflareAddresses = [
      "1.1.1.1", "1.0.0.1", "one.one.one.one", "[2606:4700:4700::1111]", "[2606:4700:4700::1001]",
      "2606:4700:4700::1111", "2606:4700:4700::1001",
    ]
  }

  /// Requests to Google are padded to a multiple of this many octets (the block length of RFC 8467 section 4.1).
  static let paddingBlock = 128

  private let flavour: Flavour
  private let path: String

  /// A dialect for the service of that flavour at a path.
  ///
  /// - Parameter path: begins with `/`; may end with a query of its own.
  public init(flavour: Flavour, path: String) {
    self.flavour = flavour
    self.path = path
  }

  /// Public services are free of charge.
  public var billing: Billing { .free }

  /// `do` and `cd`.
  public var knowsDNSSECFlags: Bool { true }

  /// Octets of a reply's body.
  public static let mostOctets = JSONLimit.message

  /// Every name, and every type that a record can have.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.type.isDataType }

  /// A GET with `name`, `type`, and where they apply `do`, `cd`, `edns_client_subnet` and `random_padding`.
  ///
  /// A name is sent as presentation text (RFC 1035 section 5.1), its escapes percent-encoded. A service that reads it in
  /// another way repeats another question, or has records of another owner, and is not believed.
  ///
  /// Without a subnet in the question none is named, not even `0.0.0.0/0`: the service then sees what any resolver
  /// sees of its client, and who wants less (RFC 7871 section 7.1.2) configures the prefix of length 0.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> TransferRequest {
    var target = QueryTarget(path: path)
    if question.name.isPlain, !question.name.isRoot {
      target.add("name", plain: plainText(of: question.name))
    } else {
      let text = question.name.lowercased.text
      target.add("name", encoding: question.name.isRoot ? text : String(text.dropLast()))
    }
    target.add("type", plain: String(question.type.rawValue))
    if question.dnssecOK { target.add("do", plain: "1") }
    if question.checkingDisabled { target.add("cd", plain: "1") }
    if flavour != .cloudflare, let subnet = question.clientSubnet { target.addClientSubnet(subnet) }
    if flavour == .google { target.pad("random_padding", toMultipleOf: JSONDialect.paddingBlock) }
    return TransferRequest(
      method: .get, target: target.text, headers: [(name: "Accept", value: "application/dns-json")])
  }

  /// The answer in a JSON body.
  public func answer(
    to question: HTTPDNSQuestion, from response: TransferResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try response.requireStatus(in: 200...200)
    try response.requireBody(.json, limit: JSONDialect.mostOctets)
    var asked = question
    if flavour == .cloudflare { asked.clientSubnet = nil }
    var reader = DNSJSONReader(question: asked, requiresQuestion: flavour != .generic)
    let reply = try withJSON(response.body, limit: JSONDialect.mostOctets) { root throws(HTTPDNSFailure) in
      try reader.read(root)
    }
    return try reply.answer(to: asked)
  }
}
