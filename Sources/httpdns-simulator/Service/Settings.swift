// Settings.swift -- the settings that can be changed at run time, by name.
//
//   clock-offset=SECONDS             seconds by which the service's clock is ahead
//   not-listed=NAME,NAME             services with an account return nothing for these names and all names below them
//   alidns-refusal=FORM              status (401 and a line of text), code (403 and an object with code) or code-200
//   tencent-newline=true             bodies end with a line feed
//   tencent-empty=true               every body is empty
//   tencent-withhold=FAMILY          none, ipv4, ipv6, both: the family without addresses
//   tencent-refusal=FORM             status (401) or empty: the reply to wrong credentials
//   tencent-client=LINES             every or last: the lines of a batch with the client's address
//   tencent-free=true                names in clear text need no account
//   tencent-half=FORM                zero (0) or ttl (0,TTL): the family of addrs without addresses
//   tencent-expiry=true              a request without an expiry is refused
//   emas-signed-only=true            requests without a signature are refused
//   emas-age=SECONDS                 seconds by which the TTLs in v1's replies have decreased
//   emas-sdns=false                  sdns- parameters are refused
//   emas-mode-number=true            v2's mode is a number
//   emas-service-ip=ADDRESS,ADDRESS  the addresses in the reply of /ss, with or without ports; empty: our own
//   emas-disable=true                /ss reports that the account is switched off
//   emas-no-servers=true             /ss lists no address
//   emas-query-type=true             a batch of v1 has type only if the request has query
//   emas-reversed=true               a batch is in the reverse order
//   emas-empty-ttl=true              v1's elements without addresses have ttl 3600 and no origin_ttl
//   emas-long-ipv6=true              IPv6 addresses are written without ::
//   emas-sparse=true                 replies lack what the documents call optional
//   baidu-expired-status=STATUS      the status of a refusal for an old signature
//   baidu-refusal-status=STATUS      the status of a refusal for a wrong signature
//   baidu-unlisted=FORM              empty, omitted or refused: what becomes of a name that is not listed
//   volcengine-list=FORM             dns or array: how several names are written
//   volcengine-unlisted=true         a name that is not listed has no addresses, instead of a refusal
//   jdcloud-refusal-status=STATUS    the status of a refusal for a wrong signature
//   jdcloud-blanks=false             addresses have no blanks around them
//   ucloud-app=TEXT                  the account is that of this application
//   ucloud-failing=true              names without a record could not be resolved
//   ucloud-nodes=ADDRESS,ADDRESS     the nodes in the reply of /service, with or without ports; empty: our own
//   table-enable=false               enable is 0
//   table-service=TEXT               the value of service
//   table-domains=NUMBER             the number of synthetic names to list; 0 lists the zone's names
//   table-ipv6=true                  IPv6 addresses follow the IPv4 addresses

import DNSWire
import JSON

/// One setting: its name, its allowed values, and how to read and write it.
struct Setting: Sendable {
  let name: String
  let allowed: String
  let show: @Sendable (ServiceOptions) -> String
  /// Sets the value; returns false if it is not allowed.
  let take: @Sendable (inout ServiceOptions, String) -> Bool
}

extension Setting {
  private typealias Place<Value> = WritableKeyPath<ServiceOptions, Value> & Sendable

  static let all: [Setting] = [
    integer("clock-offset", \.clockOffset, -4_000_000_000...4_000_000_000),
    list("not-listed", \.notListed, "domain names") { DomainName(text: $0) },
    choice("alidns-refusal", \.aliDNSRefusal),
    flag("tencent-newline", \.tencent.appendsNewline),
    flag("tencent-empty", \.tencent.isEmpty),
    choice("tencent-withhold", \.tencent.withheld),
    choice("tencent-refusal", \.tencent.refusal),
    choice("tencent-client", \.tencent.clientLines),
    flag("tencent-free", \.tencent.isFree),
    choice("tencent-half", \.tencent.emptyHalf),
    flag("tencent-expiry", \.tencent.requiresExpiry),
    flag("emas-signed-only", \.emas.requiresSignature),
    integer("emas-age", \.emas.age, 0...0x7FFF_FFFF),
    flag("emas-sdns", \.emas.supportsSDNS),
    flag("emas-mode-number", \.emas.modeIsNumber),
    list("emas-service-ip", \.emas.serviceAddresses, "addresses, with or without a port") {
      ServiceAddress(text: $0)
    },
    flag("emas-disable", \.emas.isDisabled),
    flag("emas-no-servers", \.emas.hasNoServers),
    flag("emas-query-type", \.emas.hasTypeWithQuery),
    flag("emas-reversed", \.emas.isReversed),
    flag("emas-empty-ttl", \.emas.hasEmptyTTL),
    flag("emas-long-ipv6", \.emas.hasLongIPv6),
    flag("emas-sparse", \.emas.isSparse),
    integer("baidu-expired-status", \.baidu.expiredStatus, 200...599),
    integer("baidu-refusal-status", \.baidu.refusalStatus, 200...599),
    choice("baidu-unlisted", \.baidu.unlisted),
    choice("volcengine-list", \.volcengine.list),
    flag("volcengine-unlisted", \.volcengine.hasUnlisted),
    integer("jdcloud-refusal-status", \.jdcloud.refusalStatus, 200...599),
    flag("jdcloud-blanks", \.jdcloud.hasBlanks),
    text("ucloud-app", \.ucloud.application),
    flag("ucloud-failing", \.ucloud.isFailing),
    list("ucloud-nodes", \.ucloud.nodes, "addresses with or without ports") { ServiceAddress(text: $0) },
    flag("table-enable", \.table.isEnabled),
    text("table-service", \.table.service),
    integer("table-domains", \.table.domainCount, 0...TableSwitches.domainLimit),
    flag("table-ipv6", \.table.includesIPv6),
  ]

  /// A setting whose text `parse` turns into a value; nil if the text is not allowed.
  private static func setting<Value>(
    _ name: String, _ place: any Place<Value>, _ allowed: String, show: @escaping @Sendable (Value) -> String,
    _ parse: @escaping @Sendable (String) -> Value?
  ) -> Setting {
    Setting(name: name, allowed: allowed, show: { show($0[keyPath: place]) }) { options, text in
      guard let value = parse(text) else { return false }
      options[keyPath: place] = value
      return true
    }
  }

  private static func flag(_ name: String, _ place: any Place<Bool>) -> Setting {
    setting(name, place, "true or false", show: { "\($0)" }) { Bool($0) }
  }

  private static func integer<Value: FixedWidthInteger & Sendable>(
    _ name: String, _ place: any Place<Value>, _ range: ClosedRange<Value>
  ) -> Setting {
    setting(name, place, "\(range.lowerBound) to \(range.upperBound)", show: { "\($0)" }) { text in
      Value(text).flatMap { range.contains($0) ? $0 : nil }
    }
  }

  private static func choice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
    _ name: String, _ place: any Place<Value>
  ) -> Setting {
    setting(name, place, Value.allCases.map(\.rawValue).joined(separator: ", "), show: \.rawValue) {
      Value(rawValue: $0)
    }
  }

  private static func text(_ name: String, _ place: any Place<String>) -> Setting {
    setting(name, place, "any text", show: { $0 }) { $0 }
  }

  private static func list<Value: CustomStringConvertible & Sendable>(
    _ name: String, _ place: any Place<[Value]>, _ allowed: String, _ parse: @escaping @Sendable (String) -> Value?
  ) -> Setting {
    setting(
      name, place, "\(allowed), with commas between them", show: { $0.map(\.description).joined(separator: ",") }
    ) { text in
      let parts = text.split(separator: ",")
      let values = parts.compactMap { parse(String($0)) }
      return values.count == parts.count ? values : nil
    }
  }
}

extension ServiceOptions {
  /// Changes settings by name. With one mistake, it changes none.
  ///
  /// - Throws: `SimulatorError` for an unknown name or a value that is not allowed.
  mutating func take(_ parameters: Parameters) throws(SimulatorError) {
    var changed = self
    for pair in parameters.pairs {
      let text = String(decoding: pair.value, as: UTF8.self)
      guard let setting = Setting.all.first(where: { $0.name == pair.name }) else {
        throw SimulatorError(description: "\(pair.name) is not known")
      }
      guard setting.take(&changed, text) else {
        throw SimulatorError(description: "\"\(text)\" is no value for \(pair.name): \(setting.allowed)")
      }
    }
    self = changed
  }

  /// Every setting with its value as text, as a JSON object.
  var settingsJSON: [UInt8] {
    Array(JSONText.object(Setting.all.map { ($0.name, JSONText.string($0.show(self))) }).utf8)
  }
}
