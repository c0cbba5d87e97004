// Property.swift -- what a fuzz target is: something that holds for any octets.
//
// libFuzzer looks for octets for which it does not hold; CorpusTests replays those that were once of interest.

/// Something that holds whatever a stranger sends. Not safe for two threads at once: each makes its own.
public protocol Property: SendableMetatype {
  /// The fuzz target's name, which is its folder's in Fuzz/Corpus too.
  static var name: String { get }
  /// With whatever it needs set up.
  init()
  /// Throws what does not hold for the input.
  func check(_ input: [UInt8]) throws(Violation)
}

/// Every property.
public let properties: [any Property.Type] = [
  QueryProperty.self, MessageProperty.self, RDATATextProperty.self, JSONBodyProperty.self, DoHBodyProperty.self,
  AliDNSBodyProperty.self, TencentBodyProperty.self, EMASBodyProperty.self, EMASv2BodyProperty.self,
  BaiduBodyProperty.self, VolcengineBodyProperty.self, JDCloudBodyProperty.self,
  UCloudBodyProperty.self, TextBodyProperty.self,
  TableBodyProperty.self, LocalDNSReplyProperty.self,
  ConfigurationProperty.self, TCPFramingProperty.self, HostsFileProperty.self, CacheFileProperty.self,
  StoreReplyProperty.self, ListTextProperty.self, HTTPRequestProperty.self, ProxyHeaderProperty.self,
  TokenListProperty.self, DoHTargetProperty.self,
]

/// What does not hold for an input.
public struct Violation: Error, CustomStringConvertible {
  /// One line.
  public let description: String

  init(_ description: String) { self.description = description }
}

/// Throws the description of what should hold where it does not.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(Violation) {
  guard condition else { throw Violation(description()) }
}

/// Whether a text is fit for one line of a log.
func isOneLine(_ text: String) -> Bool {
  !text.unicodeScalars.contains { $0.properties.generalCategory == .control || $0 == "\u{2028}" || $0 == "\u{2029}" }
}
