// StreamOptions.swift -- the EDNS options of responses over streams: idle timeout and padding.

/// The options that a transport's responses have if the query asks for them; none over UDP.
///
/// One number: over UDP the hot path compares it once.
public struct StreamOptions: Sendable, Equatable {
  /// The idle timeout in the low 16 bits, and above them whether there is one and whether responses are padded.
  @usableFromInline let bits: UInt32

  @inlinable static var hasKeepalive: UInt32 { @_noAllocation get { 1 << 16 } }
  @inlinable static var hasPadding: UInt32 { @_noAllocation get { 1 << 17 } }

  @_noAllocation @inlinable
  public init() { bits = 0 }

  /// - Parameters:
  ///   - keepalive: the idle timeout for edns-tcp-keepalive (RFC 7828), in units of 100 ms, at most 65,535; negative for none.
  ///   - isPadded: whether responses are padded (RFC 7830), as over TLS.
  @_noAllocation @inlinable
  public init(keepalive: Int32, isPadded: Bool = false) {
    let timeout = keepalive < 0 ? 0 : UInt32(truncatingIfNeeded: keepalive) & 0xFFFF | StreamOptions.hasKeepalive
    bits = timeout | (isPadded ? StreamOptions.hasPadding : 0)
  }

  /// Whether there are none.
  @inlinable var isEmpty: Bool { @_noAllocation get { bits == 0 } }

  /// Whether responses are padded.
  @inlinable public var isPadded: Bool { @_noAllocation get { bits & StreamOptions.hasPadding != 0 } }

  /// The idle timeout in units of 100 ms; -1 for none.
  @inlinable public var keepalive: Int32 {
    @_noAllocation get { bits & StreamOptions.hasKeepalive == 0 ? -1 : Int32(bits & 0xFFFF) }
  }

  /// The octets of the options that a response to `query` has, apart from padding.
  @_noAllocation @inlinable
  func fixedLength(for query: Query) -> Int { bits & StreamOptions.hasKeepalive != 0 && query.wantsKeepalive ? 6 : 0 }
}

/// The sizes of padded responses.
public enum Padding {
  /// Responses have a multiple of this many octets (RFC 8467 section 4.1).
  @inlinable public static var block: Int { @_noAllocation get { 468 } }

  /// The octets of OPTION-DATA for a message of `length` octets without the option: up to the next multiple, or to `limit`
  /// where that is less. -1 if even an empty option exceeds it.
  @_noAllocation @inlinable
  public static func count(after length: Int, limit: Int) -> Int {
    let least = length &+ 4
    guard least <= limit else { return -1 }
    let whole = (least &+ block &- 1) / block &* block
    return (whole < limit ? whole : limit) &- least
  }
}
