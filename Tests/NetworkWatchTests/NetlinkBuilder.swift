// NetlinkBuilder.swift -- writes what the kernel would send.

import CNetlink
import DNSWire
import Glibc

@testable import NetworkWatch

/// A message: header, fixed part, attributes.
func netlink(
  _ type: Int, _ fixed: some BitwiseCopyable, _ attributes: [(Int, [UInt8])] = [], flags: Int = 0, sequence: UInt32 = 0
) -> [UInt8] {
  let body = withUnsafeBytes(of: fixed) { Array($0) } + attributes.flatMap { attribute($0, $1) }
  let header = nlmsghdr(
    nlmsg_len: UInt32(16 + body.count), nlmsg_type: UInt16(type), nlmsg_flags: UInt16(flags), nlmsg_seq: sequence,
    nlmsg_pid: 0)
  return withUnsafeBytes(of: header) { Array($0) } + body
}

/// An attribute with its padding.
func attribute(_ type: Int, _ value: [UInt8]) -> [UInt8] {
  native(UInt16(4 + value.count)) + native(UInt16(type)) + value
    + [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
}

/// A number in the machine's order.
func native(_ value: some FixedWidthInteger & BitwiseCopyable) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

func octets(_ text: String) -> [UInt8] { IPAddress(text: text)!.octets }

/// The address family of some octets.
private func family(_ octets: [UInt8]) -> UInt8 { UInt8(octets.count == 4 ? AF_INET : AF_INET6) }

/// An interface that is up and running, or down.
func link(_ index: Int32, _ name: String = "eth0", isRunning: Bool = true, more: Int = 0, type: Int = RTM_NEWLINK)
  -> [UInt8]
{
  var fixed = ifinfomsg()
  fixed.ifi_index = index
  fixed.ifi_flags = UInt32((isRunning ? IFF_UP | IFF_RUNNING : IFF_UP) | more)
  return netlink(type, fixed, [(IFLA_IFNAME, Array(name.utf8) + [0])])
}

/// An address, as `address/length`.
func address(
  _ text: String, on index: UInt32 = 2, flags: Int32 = 0, scope: rt_scope_t = RT_SCOPE_UNIVERSE, lifetime: UInt32 = 600,
  type: Int = RTM_NEWADDR
) -> [UInt8] {
  let parts = text.split(separator: "/")
  let value = octets(String(parts[0]))
  let fixed = ifaddrmsg(
    ifa_family: family(value), ifa_prefixlen: UInt8(parts[1])!, ifa_flags: UInt8(truncatingIfNeeded: flags),
    ifa_scope: UInt8(scope.rawValue), ifa_index: index)
  return netlink(
    type, fixed,
    [
      (IFA_ADDRESS, value), (IFA_FLAGS, native(UInt32(flags))),
      (IFA_CACHEINFO, native(lifetime) + native(lifetime) + native(UInt64(7))),
    ] + (value.count == 4 ? [(IFA_LOCAL, value)] : []))
}

/// A route to `destination/length`.
func route(
  _ destination: String = "0.0.0.0/0", via gateway: String? = nil, on index: UInt32 = 2, metric: UInt32 = 0,
  table: rt_class_t = RT_TABLE_MAIN, kind: Int = RTN_UNICAST, flags: Int32 = 0, source: String? = nil,
  preference: UInt8? = nil, replaces: Bool = false, type: Int = RTM_NEWROUTE
) -> [UInt8] {
  let parts = destination.split(separator: "/")
  let value = octets(String(parts[0]))
  let fixed = rtmsg(
    rtm_family: family(value), rtm_dst_len: UInt8(parts[1])!, rtm_src_len: 0, rtm_tos: 0,
    rtm_table: UInt8(table.rawValue), rtm_protocol: 3, rtm_scope: 0, rtm_type: UInt8(kind), rtm_flags: UInt32(flags))
  var attributes = [(Int(RTA_TABLE.rawValue), native(table.rawValue)), (Int(RTA_OIF.rawValue), native(index))]
  if parts[1] != "0" { attributes.append((Int(RTA_DST.rawValue), value)) }
  if let gateway { attributes.append((Int(RTA_GATEWAY.rawValue), octets(gateway))) }
  if metric != 0 { attributes.append((Int(RTA_PRIORITY.rawValue), native(metric))) }
  if let source { attributes.append((Int(RTA_PREFSRC.rawValue), octets(source))) }
  if let preference { attributes.append((Int(RTA_PREF.rawValue), [preference])) }
  return netlink(type, fixed, attributes, flags: replaces ? Int(NLM_F_REPLACE) : 0)
}

/// A neighbour with a link-layer address.
func neighbour(_ text: String, _ linkAddress: [UInt8], on index: Int32 = 2, state: Int32 = NUD_REACHABLE) -> [UInt8] {
  let value = octets(text)
  var fixed = ndmsg()
  fixed.ndm_family = family(value)
  fixed.ndm_ifindex = index
  fixed.ndm_state = UInt16(state)
  return netlink(RTM_NEWNEIGH, fixed, [(NDA_DST, value), (NDA_LLADDR, linkAddress)])
}

/// The only message of some octets.
func message(_ octets: [UInt8]) -> NetlinkMessage {
  var messages = NetlinkMessages(octets[...])
  return messages.next()!
}
