// RouterOption.swift -- the options by which a router tells its network of the encrypted listeners: DNR (RFC 9463).

import DNSWire

/// One service of the daemon as DHCP and router advertisements carry it.
struct RouterOption {
  /// The lower, the earlier a client tries it.
  private let priority: UInt16
  /// The authentication domain name: the one in the certificate.
  private let name: String
  private let addresses: [IPAddress]
  /// Service parameters in presentation format (RFC 9460 section 2.1), by rising keys.
  private let parameters: String

  /// The services of the daemon, the preferred one first: DNS over HTTPS, then DNS over TLS.
  static func all(_ settings: DeviceSettings) -> [RouterOption] {
    var options: [RouterOption] = []
    if let port = settings.dohPort {
      options.append(
        RouterOption(
          priority: 1, name: settings.name, addresses: settings.dohAddresses,
          parameters: "alpn=h2 port=\(port) dohpath=\(settings.path){?dns}"))
    }
    if let name = settings.tlsName, let port = settings.dotPort {
      options.append(
        RouterOption(
          priority: UInt16(options.count + 1), name: name, addresses: settings.dotAddresses,
          parameters: "alpn=dot port=\(port)"))
    }
    return options
  }

  /// One line a parameter.
  var lines: [String] {
    [
      "priority \(priority)", "name \(name)",
      "addresses \(addresses.isEmpty ? "none: clients resolve the name" : addresses.map(\.description).joined(separator: " "))",
      "parameters \(parameters)",
    ]
  }

  /// The content of DHCPv4's option 162 with these services (section 5.1), in hexadecimal.
  static func dhcpv4(_ options: [RouterOption]) -> String {
    Hexadecimal.encode(
      options.flatMap { option in
        let addresses = option.addresses.filter { !$0.isIPv6 }.flatMap(\.octets)
        let instance =
          big(option.priority) + [UInt8(option.encodedName.count)] + option.encodedName
          // Without addresses the name stands alone (section 3.1.6).
          + (addresses.isEmpty ? [] : [UInt8(addresses.count)] + addresses + option.encodedParameters)
        return big(UInt16(instance.count)) + instance
      })
  }

  /// The content of DHCPv6's option 144 with this service (section 4.1), in hexadecimal. Each service has an option of its own.
  var dhcpv6: String {
    let addresses = addresses.filter(\.isIPv6).flatMap(\.octets)
    return Hexadecimal.encode(
      RouterOption.big(priority) + RouterOption.big(UInt16(encodedName.count)) + encodedName
        + (addresses.isEmpty ? [] : RouterOption.big(UInt16(addresses.count)) + addresses + encodedParameters))
  }

  private var encodedName: [UInt8] { DomainName(text: name)?.octets ?? [] }

  /// SVCB's parameters without its priority and its target, here the root.
  private var encodedParameters: [UInt8] {
    Array((RDATA.parse(text: "1 . \(parameters)", type: .svcb) ?? []).dropFirst(3))
  }

  private static func big(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] }
}
