// AliDNSConfiguration.swift -- `/conf` of Alibaba's mobile resolution: the configuration that its SDKs download.

import DNSWire
import HTTPMessage
import HTTPServer
import JSON

/// The zones and names that an account's clients may or may not resolve; empty lists do not restrict.
struct AliDNSAccessLists: Sendable {
  var blockedZones: [String] = []
  var blockedNames: [String] = []
  var allowedZones: [String] = []
  var allowedNames: [String] = []
}

struct AliDNSConfiguration: Dialect {
  let name = "alidns"
  /// Seconds after which a client downloads the configuration again.
  private static let lifetime = 3600
  /// The version of the lists, which never change.
  private static let version = 1

  func claims(_ transfer: DialectRequest) -> Bool {
    transfer.request.path == "/conf" && transfer.parameters.octets("uid") != nil
  }

  func reply(to transfer: DialectRequest, from service: Service) -> DialectReply {
    guard transfer.request.method == .get else { return .refusal(405, "Method Not Allowed") }
    let parameters = transfer.parameters
    guard
      let account = service.accounts.first(where: {
        $0.identifier == parameters["uid"] && $0.accessKeyID == parameters["ak"]
      })
    else { return .refusal(401, "Unauthorized") }
    let lists = AliDNSConfiguration.lists(
      AliDNSAccessLists(), version: AliDNSConfiguration.version, ttl: AliDNSConfiguration.lifetime)
    return DialectReply(contentType: "application/json", body: AliDNSConfiguration.sealed(lists, for: account))
  }

  /// Composes the lists as JSON with the service's keys.
  static func lists(_ lists: AliDNSAccessLists, version: Int, ttl: Int) -> [UInt8] {
    let groups = [
      ("bz", lists.blockedZones), ("bd", lists.blockedNames), ("wz", lists.allowedZones),
      ("wd", lists.allowedNames),
    ]
    let acl = JSONText.object(groups.map { ($0, JSONText.array($1.map(JSONText.string))) })
    return Array(JSONText.object(["v": "\(version)", "ttl": "\(ttl)", "uhf": "0", "acl": acl]).utf8)
  }

  /// Composes the body: the text encrypted with RC4 under the access key secret, in base64url with padding.
  static func sealed(_ text: [UInt8], for account: Account) -> [UInt8] {
    let code = Base64.encode(rc4(text, key: Array(account.accessKeySecret.utf8)))
      .replacing("+", with: "-").replacing("/", with: "_")
    return Array(#"{"v":10000,"d":"\#(code)"}"#.utf8)
  }
}

/// Encrypts or decrypts with RC4, which this service still uses.
///
/// - Precondition: the key has 1 to 256 octets.
func rc4(_ octets: [UInt8], key: [UInt8]) -> [UInt8] {
  var state = (0...255).map { UInt8($0) }
  var j: UInt8 = 0
  for i in state.indices {
    j = j &+ state[i] &+ key[i % key.count]
    state.swapAt(i, Int(j))
  }
  var i: UInt8 = 0
  j = 0
  return octets.map { octet in
    i &+= 1
    j = j &+ state[Int(i)]
    state.swapAt(Int(i), Int(j))
    return octet ^ state[Int(state[Int(i)] &+ state[Int(j)])]
  }
}
