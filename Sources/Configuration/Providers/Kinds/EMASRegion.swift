// EMASRegion.swift -- the regions of EMAS HTTPDNS and the boot addresses of each.

import DNSWire

extension Configuration {
  /// The region whose servers are used.
  public enum EMASRegion: String, CaseIterable, Hashable, Sendable {
    /// Mainland China.
    case cn
    /// Hong Kong.
    case hk
    /// Singapore.
    case sg
    /// Germany, for Europe.
    case de
    /// The United States, for the Americas.
    case us
    /// The provider chooses the nearest servers (since June 2024, alibabacloud.com/help/en/httpdns).
    case global
  }
}

extension Configuration.EMASRegion {
  /// The boot servers: the addresses of a family, IPv4 first, and as the last resort a name ("startup endpoints",
  /// help.aliyun.com/document_detail/616049.html).
  func bootServers(_ family: Configuration.Family) -> [Host] {
    let region = self == .global ? Configuration.EMASRegion.cn : self
    let name = DomainName(text: "resolvers-\(region.rawValue).httpdns.aliyuncs.com")!
    return family.servers(ipv4, ipv6) + [.name(name)]
  }

  private var ipv4: [String] {
    switch self {
    // The provider documents no addresses for "global"; its own SDKs start with those of mainland China.
    case .cn, .global:
      ["203.107.1.1", "203.107.1.97", "203.107.1.100", "203.119.238.240", "106.11.25.239", "59.82.99.47"]
    case .hk: ["47.56.234.194", "47.56.119.115"]
    case .sg: ["161.117.200.122", "47.74.222.190"]
    case .de: ["47.89.80.182", "47.246.146.77"]
    case .us: ["47.246.131.175", "47.246.131.141"]
    }
  }

  private var ipv6: [String] {
    switch self {
    case .cn, .global: ["2401:b180:7001::31d", "2408:4003:1f40::30a", "2401:b180:2000:20::10", "2401:b180:2000:30::1c"]
    case .hk, .sg: ["240b:4000:f10::178", "240b:4000:f10::188"]
    case .de: ["2404:2280:3000::176", "2404:2280:3000::188"]
    case .us: ["2404:2280:4000::2bb", "2404:2280:4000::23e"]
    }
  }
}
