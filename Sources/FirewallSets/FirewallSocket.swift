// FirewallSocket.swift -- requests to nf_tables and batches of them, each with its replies.
//
// The kernel does the work while the request is sent and writes the replies before that returns, so that nothing is waited
// for but the kernel's own lock.

import CFirewall
import Glibc

/// An error number of the kernel's reply or of a system call.
struct KernelError: Error {
  let code: Int32
}

/// A netlink socket. It belongs to one thread.
final class FirewallSocket {
  /// Octets of one message: a list of elements is one attribute, whose length has 16 bits.
  static let longestMessage = 1 << 17
  /// The kernel's messages about sets and single elements have some hundred octets.
  private static let longestReply = 1 << 14
  /// After which a missing reply is a failure.
  private static let patience: Int32 = 1

  private let socket: OpaquePointer
  private let message = UnsafeMutableRawBufferPointer.allocate(byteCount: longestMessage, alignment: 16)
  private let reply = UnsafeMutableRawBufferPointer.allocate(byteCount: longestReply, alignment: 16)
  private var sequence = UInt32.random(in: 0 ... .max)

  /// Opens the socket.
  init() throws(KernelError) {
    guard let socket = firewall_open(FirewallSocket.patience) else {
      let code = errno
      message.deallocate()
      reply.deallocate()
      throw KernelError(code: code)
    }
    self.socket = socket
  }

  deinit {
    mnl_socket_close(socket)
    message.deallocate()
    reply.deallocate()
  }

  /// Sends one request and visits the messages of its reply.
  ///
  /// - Parameters:
  ///   - type: `NFT_MSG_...`
  ///   - compose: adds the attributes.
  func request(
    _ type: Int, _ family: UInt16, compose: (UnsafeMutablePointer<nlmsghdr>) -> Void,
    visit: (UnsafePointer<nlmsghdr>) -> Void
  ) throws(KernelError) {
    let header = begin(type, family, NLM_F_ACK)
    compose(header)
    var octets: [UInt8] = []
    append(header, to: &octets)
    try send(octets)
    var code: Int32?
    while code == nil {
      try receive { reply in
        guard reply.pointee.nlmsg_seq == sequence else { return }
        var error: Int32 = 0
        if firewall_ends(reply, &error) { code = error } else { visit(reply) }
      }
    }
    if let code, code != 0 { throw KernelError(code: code) }
  }

  /// Sends messages that the kernel applies all or not at all.
  ///
  /// - Parameters:
  ///   - generation: of the rule set, to which the messages must apply.
  ///   - messages: the type and the attributes of each.
  /// - Returns: the first message that the kernel refused, with the error number; nil if all are applied.
  /// - Throws: `KernelError` if the batch as a whole failed; ERESTART means another generation.
  func commit(
    in generation: UInt32,
    _ messages: [(type: Int, family: UInt16, compose: (UnsafeMutablePointer<nlmsghdr>) -> Void)]
  ) throws(KernelError) -> (index: Int, code: Int32)? {
    var octets: [UInt8] = []
    let text = message.baseAddress!.assumingMemoryBound(to: CChar.self)
    sequence &+= 1
    let first = sequence
    let opening = nftnl_batch_begin(text, first)!
    firewall_require_generation(opening, generation)
    append(opening, to: &octets)
    for part in messages {
      let header = begin(part.type, part.family, NLM_F_ACK)
      part.compose(header)
      append(header, to: &octets)
    }
    sequence &+= 1
    append(nftnl_batch_end(text, sequence), to: &octets)
    try send(octets)

    var codes: [Int32?] = messages.map { _ in nil }
    var failure: Int32?
    while failure == nil, codes.contains(nil) {
      try receive { reply in
        var error: Int32 = 0
        guard firewall_ends(reply, &error) else { return }
        let place = reply.pointee.nlmsg_seq &- first
        if place == 0, error != 0 { failure = error }
        if place >= 1, place <= codes.count { codes[Int(place) - 1] = error }
      }
    }
    if let failure { throw KernelError(code: failure) }
    return codes.firstIndex { $0 != 0 }.map { ($0, codes[$0]!) }
  }

  private func begin(_ type: Int, _ family: UInt16, _ flags: Int32) -> UnsafeMutablePointer<nlmsghdr> {
    sequence &+= 1
    let isNew = type == Int(NFT_MSG_NEWSETELEM.rawValue)
    return nftnl_nlmsg_build_hdr(
      message.baseAddress!.assumingMemoryBound(to: CChar.self), UInt16(type), family,
      UInt16(flags | (isNew ? NLM_F_CREATE : 0)), sequence)
  }

  private func append(_ header: UnsafeMutablePointer<nlmsghdr>, to octets: inout [UInt8]) {
    octets += UnsafeRawBufferPointer(start: header, count: Int(header.pointee.nlmsg_len))
  }

  private func send(_ octets: [UInt8]) throws(KernelError) {
    while mnl_socket_sendto(socket, octets, octets.count) < 0 {
      guard errno == EINTR else { throw KernelError(code: errno) }
    }
  }

  /// Visits the messages of the next datagram.
  private func receive(_ visit: (UnsafePointer<nlmsghdr>) -> Void) throws(KernelError) {
    let count = mnl_socket_recvfrom(socket, reply.baseAddress, reply.count)
    guard count >= 0 else {
      if errno == EINTR { return }
      throw KernelError(code: errno)
    }
    var rest = Int32(count)
    var header = UnsafePointer(reply.baseAddress!.assumingMemoryBound(to: nlmsghdr.self))
    while mnl_nlmsg_ok(header, rest) {
      if mnl_nlmsg_portid_ok(header, mnl_socket_get_portid(socket)) { visit(header) }
      header = UnsafePointer(mnl_nlmsg_next(header, &rest)!)
    }
  }
}
