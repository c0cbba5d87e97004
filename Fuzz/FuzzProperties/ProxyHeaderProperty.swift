// ProxyHeaderProperty.swift -- a header is the same in any pieces, and a reader is never told to read beyond it.

import EventLoop
import Listener

/// The beginning of a connection from a proxy.
public struct ProxyHeaderProperty: Property {
  /// The fuzz target.
  public static let name = "ProxyHeader"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    let whole = ProxyHeader(input.span)
    let length: Int? =
      switch whole {
      case .client(_, let length), .local(let length): length
      case .incomplete, .refused: nil
      }
    if let length {
      try require((16...ProxyHeader.longest).contains(length) && length <= input.count, "a header of \(length) octets")
      try require(ProxyHeader(Array(input[..<length]).span) == whole, "another header without what follows")
    }
    var hasRefused = false
    for count in 0...min(input.count, length.map { $0 - 1 } ?? ProxyHeader.longest) {
      switch ProxyHeader(Array(input[..<count]).span) {
      case .incomplete(let missing):
        try require(!hasRefused, "a header that goes on after it was refused")
        try require(missing > 0 && count + missing <= length ?? ProxyHeader.longest, "\(missing) octets after \(count)")
      case .refused: hasRefused = true
      case .client, .local: throw Violation("a header that is shorter in a piece")
      }
    }
    if case .incomplete = whole { try require(!hasRefused, "a refused beginning") }
    if length != nil { try require(!hasRefused, "a header whose beginning is refused") }
  }
}
