// Secret.swift -- a key or token that is never printed.

/// A type that holds a secret. Its text is `••••`, or one of its own; reflection reveals nothing.
public protocol Concealed: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension Concealed {
  public var description: String { "••••" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// A secret text. Every description of it is `••••`; only `reveal` gives the octets.
public struct Secret: Concealed, Hashable, Sendable {
  private let octets: [UInt8]

  /// Creates a secret from a text's UTF-8 octets.
  public init(_ text: String) { octets = Array(text.utf8) }

  /// The octets of the secret. Pass them only to digests, ciphers and requests.
  public var reveal: [UInt8] { octets }

  /// Whether the octets are the secret. The time does not depend on how many of them are right.
  public func matches(_ others: [UInt8]) -> Bool {
    Digest.areEqual(Digest.sha256(octets), Digest.sha256(others))
  }
}
