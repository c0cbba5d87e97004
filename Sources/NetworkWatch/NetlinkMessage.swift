// NetlinkMessage.swift -- parses the kernel's datagrams: messages, their headers and attributes.
//
// Every length is checked. One that exceeds the rest ends the datagram or the attributes.

import CNetlink

/// One message of a datagram.
struct NetlinkMessage {
  /// An RTM_ or NLMSG_ constant.
  let type: Int
  /// NLM_F_ bits.
  let flags: Int
  /// The sequence number of the request; 0 for an event.
  let sequence: UInt32
  /// The octets after the header.
  let body: ArraySlice<UInt8>

  /// The error in an NLMSG_ERROR, 0 for an acknowledgement; nil for any other message.
  var error: Int32? {
    guard type == Int(NLMSG_ERROR), let code = body.load(as: Int32.self) else { return nil }
    return code == .min ? EINVAL : abs(code)
  }
}

/// The messages of a datagram, up to the first malformed one.
struct NetlinkMessages: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>

  init(_ datagram: ArraySlice<UInt8>) { rest = datagram }

  mutating func next() -> NetlinkMessage? {
    guard let header = rest.load(as: nlmsghdr.self) else { return nil }
    let length = Int(header.nlmsg_len)
    guard length >= MemoryLayout<nlmsghdr>.size, length <= rest.count else { return nil }
    let body = rest.prefix(length).dropFirst(MemoryLayout<nlmsghdr>.size)
    rest = rest.dropFirst(aligned(length))
    return NetlinkMessage(
      type: Int(header.nlmsg_type), flags: Int(header.nlmsg_flags), sequence: header.nlmsg_seq, body: body)
  }
}

/// The attributes after a message's fixed part, up to the first malformed one.
struct NetlinkAttributes: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>

  /// Starts after a fixed part of that type.
  init<Fixed>(of body: ArraySlice<UInt8>, behind _: Fixed.Type) {
    rest = body.dropFirst(aligned(MemoryLayout<Fixed>.size))
  }

  mutating func next() -> (type: Int, value: ArraySlice<UInt8>)? {
    guard let header = rest.load(as: rtattr.self) else { return nil }
    let length = Int(header.rta_len)
    guard length >= MemoryLayout<rtattr>.size, length <= rest.count else { return nil }
    let value = rest.prefix(length).dropFirst(MemoryLayout<rtattr>.size)
    rest = rest.dropFirst(aligned(length))
    // The two highest bits are flags for nesting and byte order.
    return (Int(header.rta_type) & 0x3FFF, value)
  }
}

extension ArraySlice<UInt8> {
  /// Reads a C value at the start, in host byte order; nil if there are too few octets.
  func load<Value: BitwiseCopyable>(as type: Value.Type) -> Value? {
    guard count >= MemoryLayout<Value>.size else { return nil }
    return withUnsafeBytes { $0.loadUnaligned(as: type) }
  }

  /// The octets before the first NUL as text.
  var text: String { String(decoding: prefix { $0 != 0 }, as: UTF8.self) }
}

/// Messages and attributes are aligned to 4 octets.
private func aligned(_ length: Int) -> Int { (length + 3) & ~3 }
