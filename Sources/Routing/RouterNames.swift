// RouterNames.swift -- the names that home routers, repeaters and access points give to their own pages.

import DNSWire

/// The names under which devices of the network show their settings. Their own resolver answers them with their address on
/// the LAN; on the Internet they do not exist, or lead to a page of the manufacturer.
///
/// Only names that have no other use, as with `PortalNames`. docs/configuration.md lists them.
public enum RouterNames {
  /// The names. What is below them belongs to them.
  public static let all: [DomainName] = texts.map { DomainName(text: $0)! }

  /// Whether a name in lower case is one of them, or below one.
  public static func contains(_ name: DomainName) -> Bool { all.contains { name.isAtOrBelow($0) } }

  private static let texts = [
    // AVM
    "fritz.box", "fritz.nas", "fritz.repeater", "myfritz.box",
    // TP-Link, Mercury and Mercusys, Fast
    "tplogin.cn", "tplinkap.net", "tplinkdeco.net", "tplinkextender.net", "tplinklogin.net", "tplinkmodem.net",
    "tplinkrepeater.net", "tplinkwifi.net", "melogin.cn", "mwlogin.net", "falogin.cn",
    // Netgear
    "mywifiext.com", "mywifiext.net", "orbilogin.com", "orbilogin.net", "routerlogin.com", "routerlogin.net",
    // ASUS
    "asusrouter.com", "repeater.asus.com", "router.asus.com",
    // Xiaomi, Tenda, Netis, Totolink, Phicomm, Huawei, Keenetic
    "miwifi.com", "tendawifi.com", "netis.cc", "itotolink.net", "phicomm.me", "homerouter.cpe", "my.keenetic.net",
    // Deutsche Telekom, Vodafone, O2, Verizon
    "speedport.ip", "easy.box", "kabel.box", "o2.box", "vodafone.box", "myfiosgateway.com", "mynetworksettings.com",
    // Several
    "my.router",
  ]
}
