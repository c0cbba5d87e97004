// Secret.swift -- a key or token that never shows itself.

/// A secret text. Every description of it is `••••`; only `reveal` gives the octets.
public struct Secret: Hashable, Sendable {
  private let octets: [UInt8]

  /// A secret of those UTF-8 octets.
  public init(_ text: String) { octets = Array(text.utf8) }

  /// The secret's octets, for a digest or a cipher only.
  public var reveal: [UInt8] { octets }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always `••••`.
  public var description: String { "••••" }
  /// Always `••••`.
  public var debugDescription: String { "••••" }
  /// Nothing to look into.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
