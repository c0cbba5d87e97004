// ServiceKind.swift -- the kinds of providers: their own keys, and what they fill in.

import DNSWire

/// The values of `kind`, those of later versions too.
enum ServiceKind: String, CaseIterable {
  case alidns, tencent, emas, json, doh, table

  static let aliDNSName = "dns.alidns.com"
  static let aliDNSPath = "/resolve"

  /// The keys that belong to this kind and not to all providers; secrets without their suffixes.
  var ownKeys: [String] {
    switch self {
    case .alidns: ["account_id", "access_key_id", "access_key_secret", "short"]
    case .tencent: ["id", "cipher", "key", "token"]
    case .emas: ["account_id", "secret_key", "api", "aes_secret_key", "aes_mode", "region", "schedule"]
    case .json: ["url"]
    case .doh: ["url", "method"]
    case .table: ["url", "file", "host", "interval", "ttl"]
    }
  }

  /// Whether the key is one of this kind's, or a way to give one of its secrets.
  func owns(_ key: String) -> Bool {
    ["", "_file", "_credential", "_env"].contains { suffix in
      key.hasSuffix(suffix) && ownKeys.contains(String(key.dropLast(suffix.count)))
    }
  }

  /// The service where the file names none.
  var defaultURL: ServiceURL {
    switch self {
    case .json: ServiceURL(text: "https://dns.google/resolve")!
    case .doh: ServiceURL(text: "https://dns.google/dns-query")!
    default: ServiceURL(text: "https://\(ServiceKind.aliDNSName)\(ServiceKind.aliDNSPath)")!
    }
  }

  /// The servers of a URL: its address, the known addresses of its name, or the name itself.
  func defaultServers(of url: ServiceURL?, tlsName: String?) -> [Configuration.Server] {
    let url = url ?? defaultURL
    let known = ServiceKind.knownAddresses[url.host.text]?.map { Host.address(IPAddress(text: $0)!) }
    return (known ?? [url.host]).map { host in
      Configuration.Server(
        host: host, port: url.port, scheme: url.scheme, tlsName: tlsName ?? url.host.text, path: url.path)
    }
  }

  /// Addresses that public services publish, so that no name has to be found before the first transfer.
  private static let knownAddresses = [
    "dns.alidns.com": ["223.5.5.5", "223.6.6.6"],
    "dns.google": ["8.8.8.8", "8.8.4.4"],
    "cloudflare-dns.com": ["1.1.1.1", "1.0.0.1"],
    "doh.pub": ["1.12.12.12", "120.53.53.53"],
  ]
}
