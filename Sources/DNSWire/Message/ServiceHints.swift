// ServiceHints.swift -- the addresses in the RDATA of SVCB and HTTPS records, which browsers use like those of A and AAAA.

/// The target and the address hints of an SVCB or HTTPS record (RFC 9460 section 2.2). Reads up to where RDATA is truncated.
public struct ServiceHints {
  /// Nil if it is no name.
  public private(set) var target: DomainName?
  /// Each of 4 or 16 octets, or of fewer at a truncated end.
  public private(set) var addresses: [ArraySlice<UInt8>] = []

  public init(_ rdata: [UInt8]) {
    var rest = rdata[...].dropFirst(2)
    while let length = rest.first, length != 0 { rest = rest.dropFirst(Int(length) + 1) }
    rest = rest.dropFirst()
    target = DomainName(octets: Array(rdata[...].dropFirst(2).prefix(upTo: rest.startIndex)))
    while rest.count >= 4 {
      let header = Array(rest.prefix(4))
      let key = Int(header[0]) << 8 | Int(header[1])
      let value = rest.dropFirst(4).prefix(Int(header[2]) << 8 | Int(header[3]))
      rest = rest.dropFirst(4 + value.count)
      guard key == 4 || key == 6 else { continue }
      let size = key == 4 ? 4 : 16
      for start in stride(from: value.startIndex, to: value.endIndex, by: size) {
        addresses.append(value[start..<min(start + size, value.endIndex)])
      }
    }
  }
}
