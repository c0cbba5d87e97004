// UCloudNodes.swift -- asks UCloud for the nodes that are near.

import Ciphers
import Configuration
import DNSWire
import HTTPMessage
import JSON

/// `GET /AUTH_ID/service`: the best node, then all of them, each as a URL. Their schemes do not count, since a list
/// must not decide whether answers are encrypted.
public struct UCloudNodes: ServerListSource {
  /// Maximum nodes of one reply.
  static let mostServers = 16
  /// The lifetime of a list, which the service does not state. Over http it bounds how long a forged list is in use.
  static let lifetime: Duration = .seconds(3600)

  private let request: UCloudRequest

  /// - Parameter appID: bundle ID or package name; nil unless the account is that of an application.
  public init(account: Configuration.SecretAccount, appID: String? = nil) {
    request = UCloudRequest(account: account, appID: appID)
  }

  /// A GET with `timestamp` and, if applicable, `app_id`. The nodes depend on the address that it comes from.
  public func request(unixTime: Int64) -> HTTPRequest { request.get("service", unixTime: unixTime) }

  /// Reads `best_service_node` and `service_node_list`. What is no URL of a host is left out.
  public func list(
    from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
    if UCloudErrorCode(of: response) == .unauthorized { throw .authentication }
    return try response.withAnswer { root throws(HTTPDNSFailure) in
      var servers: [ListedServer] = []
      var texts = [root["best_service_node"]?.text]
      if let list = root["service_node_list"] { for element in list.elements { texts.append(element.text) } }
      for case let text? in texts where servers.count < UCloudNodes.mostServers {
        if let server = UCloudNodes.server(text), !servers.contains(server) { servers.append(server) }
      }
      guard !servers.isEmpty else { throw .unreadable(.noServers(.noError)) }
      return (servers, UCloudNodes.lifetime)
    }
  }

  private static func server(_ text: String) -> ListedServer? {
    guard let url = ProviderURL(text: text), url.path == "/" else { return nil }
    return ListedServer(url.host, port: url.port == url.scheme.defaultPort ? nil : url.port)
  }
}

extension UCloudNodes: Concealed {
  /// A fixed name, without the account.
  public var description: String { "ucloud nodes" }
}
