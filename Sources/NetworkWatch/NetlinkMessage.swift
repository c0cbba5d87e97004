// NetlinkMessage.swift -- takes the kernel's datagrams apart: messages, their headers and attributes.
//
// Nothing here trusts a length: what does not fit ends the datagram or the attributes.

import CNetlink

/// One message of a datagram.
struct NetlinkMessage {
  /// An RTM_ or NLMSG_ number.
  let type: Int
  /// NLM_F_ bits.
  let flags: Int
  /// The number of the request that this belongs to; 0 for an event.
  let sequence: UInt32
  /// What follows the header.
  let body: ArraySlice<UInt8>

  /// The error of an NLMSG_ERROR; 0 is an acknowledgement. Nil for any other message.
  var error: Int32? {
    guard type == Int(NLMSG_ERROR), let code = body.load(as: Int32.self) else { return nil }
    return code == .min ? EINVAL : abs(code)
  }
}

/// The messages of a datagram, up to the first that does not fit.
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

/// The attributes that follow a message's fixed part, up to the first that does not fit.
struct NetlinkAttributes: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>

  /// The attributes behind a fixed part of that type.
  init<Fixed>(of body: ArraySlice<UInt8>, behind _: Fixed.Type) {
    rest = body.dropFirst(aligned(MemoryLayout<Fixed>.size))
  }

  mutating func next() -> (type: Int, value: ArraySlice<UInt8>)? {
    guard let header = rest.load(as: rtattr.self) else { return nil }
    let length = Int(header.rta_len)
    guard length >= MemoryLayout<rtattr>.size, length <= rest.count else { return nil }
    let value = rest.prefix(length).dropFirst(MemoryLayout<rtattr>.size)
    rest = rest.dropFirst(aligned(length))
    // The two highest bits say how a value is nested and ordered.
    return (Int(header.rta_type) & 0x3FFF, value)
  }
}

extension ArraySlice<UInt8> {
  /// A C value at the beginning, in the machine's order; nil where it does not fit.
  func load<Value: BitwiseCopyable>(as type: Value.Type) -> Value? {
    guard count >= MemoryLayout<Value>.size else { return nil }
    return withUnsafeBytes { $0.loadUnaligned(as: type) }
  }

  /// The octets as text, up to the first zero.
  var text: String { String(decoding: prefix { $0 != 0 }, as: UTF8.self) }
}

/// Everything in a datagram begins at a multiple of 4 octets.
private func aligned(_ length: Int) -> Int { (length + 3) & ~3 }
