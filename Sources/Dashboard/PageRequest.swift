// PageRequest.swift -- what a request below `/dashboard` must be: its Host, its origin, its method, its body. Pure.

import Control
import DNSWire
import Fleet
import HTTPMessage
import HTTPServer
import JSON
import Upstreams

/// Why a request is refused.
struct DashboardRefusal: Error {
  var status: Int
  /// A sentence.
  var reason: String
  var fields: [HTTPField] = []

  init(_ status: Int, _ reason: String) { (self.status, self.reason) = (status, reason) }

  static func method(_ allowed: String) -> DashboardRefusal {
    var refusal = DashboardRefusal(405, "only \(allowed) is allowed")
    refusal.fields = [HTTPField("Allow", allowed)]
    return refusal
  }

  static var noSession: DashboardRefusal {
    var refusal = DashboardRefusal(401, "no session: `httpdnsd dashboard` prints an address that begins one")
    refusal.fields = [HTTPField("WWW-Authenticate", "Bearer")]
    return refusal
  }
}

/// A path with data, below `/dashboard/`.
enum Endpoint: String {
  case history, events, queries, session, action

  /// The methods that it takes.
  fileprivate var methods: [HTTPMethod] {
    switch self {
    case .history, .events, .queries: [.get]
    case .session: [.post, .delete]
    case .action: [.post]
    }
  }
}

enum PageRequest {
  /// Of every answer: nothing from elsewhere, no script in a text, no frame of another site.
  static let safetyFields = [
    HTTPField(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"),
    HTTPField("X-Content-Type-Options", "nosniff"), HTTPField("Referrer-Policy", "no-referrer"),
    HTTPField("Cross-Origin-Opener-Policy", "same-origin"), HTTPField("Cross-Origin-Resource-Policy", "same-origin"),
  ]
  static let streamFields =
    [HTTPField("Content-Type", PageEvent.contentType), HTTPField("Cache-Control", "no-store")] + safetyFields
  /// The words behind the numbers of providers' states, as JSON.
  static let states = JSONText.array(ProviderReport.State.words.map(JSONText.string))

  /// Returns the Host field of a request for this server.
  static func host(of request: HTTPServerRequest, _ hosts: HostCheck) throws(DashboardRefusal) -> String {
    guard let host = request.host else { throw DashboardRefusal(400, "the Host field is missing") }
    guard hosts.admitsToDashboard(host) else {
      throw DashboardRefusal(
        421, "the Host field is not an address, localhost, the machine's name or one of web.hosts")
    }
    return host
  }

  /// Checks a request for data before its content is looked at.
  static func check(
    _ request: HTTPServerRequest, _ host: String, _ hosts: HostCheck, _ endpoint: Endpoint
  ) throws(DashboardRefusal) {
    guard endpoint.methods.contains(request.method) else {
      throw .method(endpoint.methods.map(\.rawValue).joined(separator: ", "))
    }
    if let site = request.field("Sec-Fetch-Site")?.lowercased(), site == "cross-site" || site == "same-site" {
      throw DashboardRefusal(403, "pages of other origins may not ask")
    }
    let origins = request.fields.filter { $0.name.lowercased() == "origin" }.map(\.value)
    guard origins.count < 2 else { throw DashboardRefusal(400, "there are two Origin fields") }
    guard request.method != .get else {
      // No browser sends the field to the page's own origin.
      guard let origin = origins.first?.lowercased() else { return }
      if origin == "http://\(host.lowercased())" || origin == "https://\(host.lowercased())" { return }
      throw DashboardRefusal(403, "pages of other origins may not ask")
    }
    if let origin = origins.first, !hosts.admits(origin: origin, of: host) {
      throw DashboardRefusal(
        403,
        "a page may sign in and act over loopback, or by a name of web.hosts over HTTPS: tokens stay off the network")
    }
    guard request.method == .post else { return }
    let type = request.field("Content-Type")?.prefix { $0 != ";" && $0 != " " }.lowercased()
    guard type == "application/json" else { throw DashboardRefusal(415, "Content-Type is not application/json") }
    guard request.body.count <= Dashboard.mostOctets else {
      throw DashboardRefusal(413, "the body has more than \(Dashboard.mostOctets) octets")
    }
  }

  /// Reads the body of a request for a session.
  static func code(_ body: [UInt8]) throws(DashboardRefusal) -> String {
    try members(of: body) { members throws(DashboardRefusal) in
      guard members.count == 1, let code = members["code"]?.text else {
        throw DashboardRefusal(400, "the body is not {\"code\":\"…\"}")
      }
      return code
    }
  }

  /// Reads the body of a request for an action.
  static func action(_ body: [UInt8]) throws(DashboardRefusal) -> OperatorAction {
    try members(of: body) { members throws(DashboardRefusal) in
      func only(_ names: String...) throws(DashboardRefusal) {
        if let name = members.keys.sorted().first(where: { $0 != "do" && !names.contains($0) }) {
          throw DashboardRefusal(400, "\(JSONText.string(name)) is no member of this action")
        }
      }
      func name() throws(DashboardRefusal) -> DomainName {
        guard let text = members["name"]?.text, let name = DomainName(text: text) else {
          throw DashboardRefusal(400, "\"name\" is not a domain name")
        }
        return name.lowercased
      }
      switch members["do"]?.text {
      case "flush":
        try only("name", "below", "all")
        if members["name"] == nil {
          // A page that forgets a member must not empty the cache.
          guard members["all"]?.boolean == true, members["below"] == nil else {
            throw DashboardRefusal(400, "flush needs \"name\", or \"all\":true")
          }
          return .flush(.everything)
        }
        guard members["all"] == nil else { throw DashboardRefusal(400, "flush takes \"name\" or \"all\", not both") }
        let below = members["below"].map(\.boolean) ?? false
        guard let below else { throw DashboardRefusal(400, "\"below\" is neither true nor false") }
        let top = try name()
        guard !below || !top.isRoot else { throw DashboardRefusal(400, "all names take \"all\":true") }
        return .flush(.names([top], andBelow: below))
      case "refresh":
        try only("name")
        return .refresh(try name())
      case "report-bad":
        try only("name", "address")
        guard let address = members["address"]?.text.flatMap({ IPAddress(text: $0) }) else {
          throw DashboardRefusal(400, "\"address\" is not an IP address")
        }
        return .reportBad(try name(), address)
      default: throw DashboardRefusal(400, "\"do\" is neither flush, refresh nor report-bad")
      }
    }
  }

  private static func members<Value>(
    of body: [UInt8], _ read: ([String: JSONValue]) throws(DashboardRefusal) -> Value
  ) throws(DashboardRefusal) -> Value {
    try withJSON(body, orThrow: { _ in DashboardRefusal(400, "the body is not JSON") }) {
      root throws(DashboardRefusal) in
      guard root.isObject else { throw DashboardRefusal(400, "the body is not a JSON object") }
      return try read(Dictionary(root.members.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }))
    }
  }
}
