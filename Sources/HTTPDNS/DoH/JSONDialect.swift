// JSONDialect.swift -- the JSON services of Google, Cloudflare and doh.pub, and other services of that form.

import DNSWire
import HTTPMessage
import JSON

/// GET with a name and a type; the reply is JSON. The services share the form of the reply and accept different
/// parameters.
public struct JSONDialect: Dialect {
  /// The features of a service.
  public enum Flavour: Hashable, Sendable {
    /// dns.google: subnets and padding (developers.google.com/speed/public-dns/docs/doh/json).
    case google
    /// Cloudflare (developers.cloudflare.com, "DNS over HTTPS", "Using JSON"): neither subnets nor padding.
    case cloudflare
    /// Any other service, for example doh.pub: subnets as with Google; the reply need not repeat the question.
    case generic

    /// Detects the flavour of a service from its host name or address and its path.
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

  /// - Parameter path: begins with `/`; may end with a query of its own.
  public init(flavour: Flavour, path: String) {
    self.flavour = flavour
    self.path = path
  }

  /// Free: public services have no price.
  public var billing: Billing { .free }

  /// Maximum octets of a reply's body: as many as the contents of any DNS message can take, 4,000 addresses, each with its
  /// owner name and a few more members.
  public static let mostOctets = 500 << 10

  /// Every name and every data type.
  public func serves(_ question: HTTPDNSQuestion) -> Bool { question.type.isDataType }

  /// Cloudflare takes none.
  public func sends(_ subnet: IPPrefix) -> Bool { flavour != .cloudflare }

  /// A GET with `name` and `type`, and if applicable `do`, `cd`, `edns_client_subnet` and `random_padding`.
  ///
  /// A name is sent in presentation format (RFC 1035 section 5.1), its escapes percent-encoded. If a service interprets
  /// it differently, its reply has another question or other owner names, and is refused.
  ///
  /// A question without a subnet sends none, not even `0.0.0.0/0`: the service then sees the client's address, as any
  /// resolver does. For more privacy (RFC 7871 section 7.1.2) the configuration can set a prefix of length 0.
  public func request(for question: HTTPDNSQuestion, unixTime: Int64) -> HTTPRequest {
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
    if let subnet = question.clientSubnet, sends(subnet) { target.addClientSubnet(subnet) }
    if flavour == .google { target.pad("random_padding", toMultipleOf: JSONDialect.paddingBlock) }
    return HTTPRequest(target: target.text, fields: JSONDialect.fields)
  }

  private static let fields = [HTTPField("Accept", "application/dns-json")]

  /// How long a denial without an SOA record may be kept for its `max-age`, in seconds: never longer than without one.
  private static let denialLifetimes: ClosedRange<UInt32> = 1...30

  /// Reads a JSON body. The form of AdGuard has no `Authority`: `max-age` limits the lifetime of a denial without an SOA
  /// record.
  public func answer(
    to question: HTTPDNSQuestion, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    try response.requireStatus(in: 200...200)
    try response.requireBody(.json, limit: JSONDialect.mostOctets)
    var asked = question
    if flavour == .cloudflare { asked.clientSubnet = nil }
    var reader = DNSJSONReader(question: asked, requiresQuestion: flavour != .generic)
    let reply = try withJSON(response.body, limit: JSONDialect.mostOctets) { root throws(HTTPDNSFailure) in
      try reader.read(root)
    }
    var answer = try reply.answer(to: asked)
    if answer.isNegative, answer.negativeTTL == nil {
      answer.statedTTL = response.maxAge.map {
        min(max($0, JSONDialect.denialLifetimes.lowerBound), JSONDialect.denialLifetimes.upperBound)
      }
    }
    return answer
  }
}
