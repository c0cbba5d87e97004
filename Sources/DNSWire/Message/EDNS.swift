// EDNS.swift -- the contents of an OPT record (RFC 6891 section 6.1).

/// The contents of an OPT record.
public struct EDNS: Hashable, Sendable {
  /// The largest UDP payload that the sender can receive, in octets; values below 512 mean 512.
  public var udpPayloadSize: UInt16
  /// The upper eight bits of the response code.
  public var extendedResponseCode: UInt8
  /// The version; only 0 is defined.
  public var version: UInt8
  /// DO: the sender accepts DNSSEC records (RFC 3225).
  public var dnssecOK: Bool
  /// The options in their order.
  public var options: [Option]

  /// The payload size of DNS Flag Day 2020, which avoids fragmentation.
  public static let usualPayloadSize: UInt16 = 1232

  /// An OPT record of version 0.
  public init(udpPayloadSize: UInt16 = EDNS.usualPayloadSize, dnssecOK: Bool = false, options: [Option] = []) {
    self.udpPayloadSize = udpPayloadSize
    self.extendedResponseCode = 0
    self.version = 0
    self.dnssecOK = dnssecOK
    self.options = options
  }
}

extension EDNS {
  /// An option: a code and opaque octets.
  public struct Option: Hashable, Sendable {
    public var code: OptionCode
    /// OPTION-DATA, at most 65,535 octets.
    public var data: [UInt8]
    public init(code: OptionCode, data: [UInt8]) {
      self.code = code
      self.data = data
    }
  }

  /// An OPTION-CODE of IANA's registry.
  public struct OptionCode: RawRepresentable, Hashable, Sendable {
    /// The number on the wire.
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }
    /// EDNS Client Subnet, RFC 7871.
    public static var clientSubnet: OptionCode { OptionCode(rawValue: 8) }
    /// edns-tcp-keepalive, RFC 7828.
    public static var tcpKeepalive: OptionCode { OptionCode(rawValue: 11) }
    /// Padding, RFC 7830.
    public static var padding: OptionCode { OptionCode(rawValue: 12) }
    /// Extended DNS Error, RFC 8914.
    public static var extendedError: OptionCode { OptionCode(rawValue: 15) }
  }

  /// The data of the first option with that code; nil without such an option.
  public func option(_ code: OptionCode) -> [UInt8]? { options.first { $0.code == code }?.data }

  /// The client subnet; nil if the option is missing or malformed (RFC 7871 section 6).
  public var clientSubnet: ClientSubnet? { option(.clientSubnet).flatMap { ClientSubnet(octets: $0) } }

  /// The Extended DNS Errors in message order, except options without an INFO-CODE.
  public var extendedErrors: [ExtendedErrorReport] {
    options.filter { $0.code == .extendedError }.compactMap { ExtendedErrorReport(octets: $0.data) }
  }
}

extension ExtendedError {
  /// The error to pass on: the first with a reason from a validator (RFC 8914 sections 4.7 to 4.13), else the first.
  public static func mostTelling(of errors: [ExtendedError]) -> ExtendedError? {
    errors.first { (6...12).contains($0.rawValue) } ?? errors.first
  }
}

extension Message {
  /// The Extended DNS Error to pass on.
  public var extendedError: ExtendedError? {
    edns.flatMap { ExtendedError.mostTelling(of: $0.extendedErrors.map(\.code)) }
  }
}

/// One Extended DNS Error (RFC 8914 section 2).
public struct ExtendedErrorReport: Hashable, Sendable {
  /// INFO-CODE.
  public var code: ExtendedError
  /// EXTRA-TEXT: human-readable, chosen by the sender and so not trusted.
  public var text: String

  public init(code: ExtendedError, text: String = "") {
    self.code = code
    self.text = text
  }

  /// A report from an option's data; nil if the INFO-CODE is incomplete. Invalid UTF-8 is repaired.
  public init?(octets: [UInt8]) {
    guard octets.count >= 2 else { return nil }
    code = ExtendedError(rawValue: UInt16(octets[0]) << 8 | UInt16(octets[1]))
    // The option's length ends the text, but some senders add a NUL.
    let text = octets.last == 0 && octets.count > 2 ? octets[2...].dropLast() : octets[2...]
    self.text = String(decoding: text, as: UTF8.self)
  }

  public var option: EDNS.Option {
    EDNS.Option(
      code: .extendedError,
      data: [UInt8(truncatingIfNeeded: code.rawValue >> 8), UInt8(truncatingIfNeeded: code.rawValue)] + text.utf8)
  }
}
