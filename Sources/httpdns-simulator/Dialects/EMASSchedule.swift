// EMASSchedule.swift -- EMAS's scheduling call `/{account}/ss`: the addresses that serve the account.

import DNSWire

struct EMASSchedule {
  private let transfer: Transfer
  private let service: Service

  init(_ transfer: Transfer, _ service: Service) {
    self.transfer = transfer
    self.service = service
  }

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
    var json = JSONWriter()
    json.beginObject()
    list("service_ip", "service_ip_port", addresses.filter { !$0.address.isIPv6 }, &json)
    list("service_ipv6", "service_ipv6_port", addresses.filter(\.address.isIPv6), &json)
    if service.options.emas.isDisabled {
      json.key("service_status")
      json.string("disable")
    }
    json.endObject()
    return json.octets
  }

  /// Writes the addresses of a family, and their ports if one of them has a port of its own.
  private func list(
    _ key: StaticString, _ portKey: StaticString, _ addresses: [ServiceAddress], _ json: inout JSONWriter
  ) {
    json.key(key)
    json.beginArray()
    for address in addresses { json.string(address.address.description) }
    json.endArray()
    guard addresses.contains(where: { $0.port != nil }) else { return }
    json.key(portKey)
    json.beginArray()
    for address in addresses { json.number(address.port ?? (transfer.isSecure ? 443 : 80)) }
    json.endArray()
  }
}
