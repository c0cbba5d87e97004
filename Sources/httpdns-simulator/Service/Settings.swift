// Settings.swift -- the switches that may be turned while the service runs, by their names.
//
//   clock-offset=SECONDS             the service's clock is so far ahead
//   not-listed=NAME,NAME             names, with all below them, that Tencent and EMAS leave empty
//   tencent-newline=true             bodies end with a line feed
//   tencent-empty=true               every body is empty
//   tencent-withhold=FAMILY          none, ipv4, ipv6, both: that family has no addresses
//   tencent-refusal=FORM             status (401) or empty: what wrong credentials get
//   tencent-client=LINES             every or last: where a batch has the client's address
//   tencent-free=true                names in the clear need no account
//   emas-signed-only=true            requests without a signature are refused
//   emas-age=SECONDS                 so much of the TTL is gone in v1's replies
//   emas-sdns=false                  sdns- parameters are refused
//   emas-mode-number=true            v2's mode is a number
//   emas-service-ip=ADDRESS,ADDRESS  what /ss names, with or without ports; empty for the simulator itself
//   emas-disable=true                /ss says that the account is switched off
//   table-enable=false               enable is 0
//   table-service=TEXT               the label of the line
//   table-domains=NUMBER             so many synthetic names; 0 for those of the zone
//   table-ipv6=true                  IPv6 addresses stand behind the IPv4 ones

import DNSWire

/// A setting that cannot be understood: what was found, and what is allowed.
struct SettingError: Error, Equatable, CustomStringConvertible {
  let description: String
}

/// One switch: its name, what it takes, and how it is read and written.
struct Setting: Sendable {
  let name: String
  let allowed: String
  let show: @Sendable (ServiceOptions) -> String
  /// Writes the value; false for one that is not allowed.
  let take: @Sendable (inout ServiceOptions, String) -> Bool
}

extension Setting {
  private typealias Place<Value> = WritableKeyPath<ServiceOptions, Value> & Sendable

  /// Every setting.
  static let all: [Setting] = [
    integer("clock-offset", \.clockOffset, -4_000_000_000...4_000_000_000),
    list("not-listed", \.notListed, "domain names") { DomainName(text: $0) },
    flag("tencent-newline", \.tencent.appendsNewline),
    flag("tencent-empty", \.tencent.isEmpty),
    choice("tencent-withhold", \.tencent.withheld),
    choice("tencent-refusal", \.tencent.refusal),
    choice("tencent-client", \.tencent.clientLines),
    flag("tencent-free", \.tencent.isFree),
    flag("emas-signed-only", \.emas.requiresSignature),
    integer("emas-age", \.emas.age, 0...0x7FFF_FFFF),
    flag("emas-sdns", \.emas.supportsSDNS),
    flag("emas-mode-number", \.emas.modeIsNumber),
    list("emas-service-ip", \.emas.serviceAddresses, "addresses, with or without a port") { ServiceAddress(text: $0) },
    flag("emas-disable", \.emas.isDisabled),
    flag("table-enable", \.table.isEnabled),
    text("table-service", \.table.service),
    integer("table-domains", \.table.domainCount, 0...TableSwitches.domainLimit),
    flag("table-ipv6", \.table.includesIPv6),
  ]

  private static func flag(_ name: String, _ place: any Place<Bool>) -> Setting {
    Setting(name: name, allowed: "true or false", show: { "\($0[keyPath: place])" }) { options, text in
      guard let value = Bool(text) else { return false }
      options[keyPath: place] = value
      return true
    }
  }

  private static func integer<Value: FixedWidthInteger & Sendable>(
    _ name: String, _ place: any Place<Value>, _ range: ClosedRange<Value>
  ) -> Setting {
    let allowed = "\(range.lowerBound) to \(range.upperBound)"
    return Setting(name: name, allowed: allowed, show: { "\($0[keyPath: place])" }) { options, text in
      guard let value = Value(text), range.contains(value) else { return false }
      options[keyPath: place] = value
      return true
    }
  }

  private static func choice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
    _ name: String, _ place: any Place<Value>
  ) -> Setting {
    let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
    return Setting(name: name, allowed: allowed, show: { $0[keyPath: place].rawValue }) { options, text in
      guard let value = Value(rawValue: text) else { return false }
      options[keyPath: place] = value
      return true
    }
  }

  private static func text(_ name: String, _ place: any Place<String>) -> Setting {
    Setting(name: name, allowed: "any text", show: { $0[keyPath: place] }) { options, text in
      options[keyPath: place] = text
      return true
    }
  }

  private static func list<Value: CustomStringConvertible & Sendable>(
    _ name: String, _ place: any Place<[Value]>, _ allowed: String, _ parse: @escaping @Sendable (String) -> Value?
  ) -> Setting {
    Setting(
      name: name, allowed: "\(allowed), with commas between them",
      show: { $0[keyPath: place].map(\.description).joined(separator: ",") }
    ) { options, text in
      let parts = text.split(separator: ",")
      let values = parts.compactMap { parse(String($0)) }
      guard values.count == parts.count else { return false }
      options[keyPath: place] = values
      return true
    }
  }
}

extension ServiceOptions {
  /// Takes settings by name; without a mistake all of them, otherwise none.
  ///
  /// - Throws: `SettingError` for a name that is not known and a value that is not allowed.
  mutating func take(_ parameters: Parameters) throws(SettingError) {
    var changed = self
    for pair in parameters.pairs {
      let text = String(decoding: pair.value, as: UTF8.self)
      guard let setting = Setting.all.first(where: { $0.name == pair.name }) else {
        throw SettingError(description: "\(pair.name) is not known")
      }
      guard setting.take(&changed, text) else {
        throw SettingError(description: "\"\(text)\" is no value for \(pair.name): \(setting.allowed)")
      }
    }
    self = changed
  }

  /// Every setting with its value as text, as a JSON object.
  var settingsJSON: [UInt8] {
    var json = JSONWriter()
    json.beginObject()
    for setting in Setting.all {
      json.key(setting.name)
      json.string(setting.show(self))
    }
    json.endObject()
    return json.octets
  }
}
