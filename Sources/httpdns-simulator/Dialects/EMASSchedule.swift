// EMASSchedule.swift -- EMAS's scheduling call `/{account}/ss`: the addresses that serve the account.

import DNSWire
import JSON

struct EMASSchedule {
  let transfer: DialectRequest
  let service: Service

  func reply(account: String) throws(EMASError) -> DialectReply {
    try service.checkEMASAccount(account)
    let isVerified = try service.verifyEMASSchedule(transfer.parameters, now: transfer.now)
    return DialectReply(contentType: "application/json", body: body, isVerified: isVerified)
  }

  /// The addresses from the settings, otherwise those of the simulator for the same scheme.
  private var addresses: [ServiceAddress] {
    guard !service.options.emas.hasNoServers else { return [] }
    let chosen = service.options.emas.serviceAddresses
    guard chosen.isEmpty else { return chosen }
    return (transfer.isSecure ? service.secureAddresses : service.plainAddresses).map { ServiceAddress($0) }
  }

  private var body: [UInt8] {
    let members = list("service_ip", isIPv6: false) + list("service_ipv6", isIPv6: true)
    let status = service.options.emas.isDisabled ? JSONText.string("disable") : nil
    return Array(JSONText.object(members + JSONText.members(["service_status": status])).utf8)
  }

  /// The addresses of a family, and their ports if one of them has a port of its own.
  private func list(_ key: String, isIPv6: Bool) -> [(String, String)] {
    let addresses = addresses.filter { $0.address.isIPv6 == isIPv6 }
    let ports = addresses.map { "\($0.port ?? (transfer.isSecure ? 443 : 80))" }
    return JSONText.members([
      key: JSONText.array(addresses.map { JSONText.string($0.address.description) }),
      "\(key)_port": addresses.contains { $0.port != nil } ? JSONText.array(ports) : nil,
    ])
  }
}
