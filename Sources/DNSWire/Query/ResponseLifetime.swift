// ResponseLifetime.swift -- how long a response may be cached outside the DNS: one walk over its octets, without allocation.

/// How long a response stays valid.
public enum ResponseLifetime {
  /// Seconds that a response may be cached by HTTP (RFC 8484 section 5.1): the lowest TTL of its answer and authority
  /// sections, in which an SOA record of the authority section counts with its MINIMUM, if that is lower (RFC 2308 section 5).
  ///
  /// -1 for a response that must not be stored: another RCODE than NOERROR and NXDOMAIN, TC, a negative answer without an
  /// SOA record, and octets that are no response.
  /// - Complexity: O(n) in the octets
  @_noAllocation
  public static func seconds(of response: Span<UInt8>) -> Int {
    guard response.count >= QueryReader.headerLength else { return -1 }
    let flags = word(response, 2)
    let code = flags & 0xF
    guard flags & HeaderFlag.qr != 0, flags & HeaderFlag.tc == 0,
      code == ResponseCode.noError.rawValue || code == ResponseCode.nxDomain.rawValue
    else { return -1 }
    var position = QueryReader.headerLength
    var questions = word(response, 4)
    while questions > 0 {
      guard skipName(response, &position) else { return -1 }
      position += 4
      questions -= 1
    }
    let answers = Int(word(response, 6))
    let authorities = answers + Int(word(response, 8))
    let records = authorities + Int(word(response, 10))
    var lowest = Int.max
    var isNegative = code == ResponseCode.nxDomain.rawValue || answers == 0
    var index = 0
    while index < records {
      guard skipName(response, &position), position + 10 <= response.count else { return -1 }
      let type = word(response, position)
      let ttl = number(response, position + 4)
      position += 10 + Int(word(response, position + 8))
      guard position <= response.count else { return -1 }
      if index < authorities {
        // A TTL with the highest bit set means 0 (RFC 2181 section 8).
        lowest = min(lowest, ttl >> 31 == 0 ? ttl : 0)
        if index >= answers, type == RecordType.soa.rawValue {
          lowest = min(lowest, number(response, position - 4))
          isNegative = false
        }
      } else if type == RecordType.opt.rawValue, ttl >> 24 != 0 {
        // The upper bits of the RCODE, as of BADVERS (RFC 6891 section 6.1.3).
        return -1
      }
      index += 1
    }
    return isNegative || lowest == .max ? -1 : lowest
  }

  /// Steps over a name; a pointer ends it.
  @_noAllocation
  private static func skipName(_ message: Span<UInt8>, _ position: inout Int) -> Bool {
    while position < message.count {
      let length = Int(message[position])
      if length >= 0xC0 {
        position += 2
        return true
      }
      guard length <= NameLimit.label else { return false }
      position += length + 1
      if length == 0 { return true }
    }
    return false
  }

  @_noAllocation
  private static func min(_ first: Int, _ second: Int) -> Int { first < second ? first : second }

  @_noAllocation @inline(__always)
  private static func word(_ message: Span<UInt8>, _ offset: Int) -> UInt16 {
    UInt16(message[offset]) << 8 | UInt16(message[offset + 1])
  }

  @_noAllocation @inline(__always)
  private static func number(_ message: Span<UInt8>, _ offset: Int) -> Int {
    Int(word(message, offset)) << 16 | Int(word(message, offset + 2))
  }
}
