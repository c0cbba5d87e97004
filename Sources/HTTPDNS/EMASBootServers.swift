// EMASBootServers.swift -- the servers of EMAS that a client starts with.

import DNSWire

/// The page "start IP addresses" (alibabacloud.com/help/en/httpdns) and the configuration of the provider's own programs
/// (github.com/aliyun/alibabacloud-httpdns-c-sdk, …-android-sdk, …-ios-sdk).
extension EMASSchedule.Region {
  /// Addresses that answer the question for servers, IPv4 first. No document has any for `global`: those of `cn`, the
  /// service's default region, serve it.
  public var bootAddresses: [IPAddress] { bootAddressTexts.map { IPAddress(text: $0)! } }

  /// The name of these addresses, for who can resolve it by other means.
  public var bootName: DomainName {
    DomainName(text: "resolvers-\(self == .global ? "cn" : rawValue).httpdns.aliyuncs.com")!
  }

  private var bootAddressTexts: [String] {
    switch self {
    case .cn, .global:
      [
        "203.107.1.1", "203.107.1.97", "203.107.1.100", "203.119.238.240", "106.11.25.239", "59.82.99.47",
        "2401:b180:7001::31d", "2408:4003:1f40::30a", "2401:b180:2000:20::10", "2401:b180:2000:30::1c",
      ]
    case .hk: ["47.56.234.194", "47.56.119.115"] + easternAddressTexts
    case .sg: ["161.117.200.122", "47.74.222.190"] + easternAddressTexts
    case .de: ["47.89.80.182", "47.246.146.77", "2404:2280:3000::176", "2404:2280:3000::188"]
    case .us: ["47.246.131.175", "47.246.131.141", "2404:2280:4000::2bb", "2404:2280:4000::23e"]
    }
  }

  /// Hong Kong and Singapore share their IPv6 addresses.
  private var easternAddressTexts: [String] { ["240b:4000:f10::178", "240b:4000:f10::188"] }
}
