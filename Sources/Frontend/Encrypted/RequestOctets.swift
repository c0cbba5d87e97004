// RequestOctets.swift -- comparisons of a request's octets with words, without allocation.

import DNSWire

extension UnsafeBufferPointer where Element == UInt8 {
  /// The octets from `start` up to, not including, `end`.
  @_noAllocation
  func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
    guard let base = baseAddress, start < end else { return UnsafeBufferPointer(start: nil, count: 0) }
    return UnsafeBufferPointer(start: base + start, count: end - start)
  }

  /// The offset of the first such octet from `start` on; `count` without one.
  @_noAllocation
  func offset(of octet: UInt8, from start: Int = 0) -> Int {
    var index = start
    while index < count, self[index] != octet { index += 1 }
    return index < count ? index : count
  }

  @_noAllocation
  func begins(with word: UnsafeBufferPointer<UInt8>) -> Bool {
    guard count >= word.count else { return false }
    var index = 0
    while index < word.count {
      guard self[index] == word[index] else { return false }
      index += 1
    }
    return true
  }

  /// Whether both are the same, where `word` is in lower case and these octets in any.
  @_noAllocation
  func isEqual(inAnyCase word: UnsafeBufferPointer<UInt8>) -> Bool {
    guard count == word.count else { return false }
    var index = 0
    while index < count {
      guard asciiLowercase(self[index]) == word[index] else { return false }
      index += 1
    }
    return true
  }
}

extension StaticString {
  @inline(__always)
  var octets: UnsafeBufferPointer<UInt8> {
    @_noAllocation get { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
  }
}
