// NetlinkRequest.swift -- reads tables from the kernel, synchronously and without waiting.

import CNetlink
import Glibc

/// A request of rtnetlink(7). Each one opens its own socket, so that answers cannot be mixed up.
struct NetlinkRequest {
  /// Maximum octets of an answer, some 40,000 routes; the rest is not read.
  static let longestAnswer = 4 << 20
  /// Buffer for one datagram of an answer; the kernel sends at most 32 KiB.
  static let datagramSize = 65_536
  /// Maximum reads of a table that changes during the read.
  private static let attempts = 3
  /// The sequence number of all requests, because each has its own socket.
  private static let sequence: UInt32 = 1

  private let octets: [UInt8]
  private let isDump: Bool

  /// All interfaces.
  static var links: NetlinkRequest { NetlinkRequest(RTM_GETLINK, ifinfomsg()) }

  /// One interface.
  static func link(_ index: Int32) -> NetlinkRequest {
    var fixed = ifinfomsg()
    fixed.ifi_index = index
    return NetlinkRequest(RTM_GETLINK, fixed, isDump: false)
  }

  /// The addresses of an interface; 0 means all. Older kernels also return those of other interfaces.
  static func addresses(_ family: Int32, on index: Int32 = 0) -> NetlinkRequest {
    var fixed = ifaddrmsg()
    fixed.ifa_family = UInt8(family)
    fixed.ifa_index = UInt32(index)
    return NetlinkRequest(RTM_GETADDR, fixed)
  }

  /// The routes of a table; 0 means all. Older kernels also return those of other tables.
  static func routes(_ family: Int32, table: UInt8 = 0) -> NetlinkRequest {
    var fixed = rtmsg()
    fixed.rtm_family = UInt8(family)
    fixed.rtm_table = table
    return NetlinkRequest(RTM_GETROUTE, fixed)
  }

  /// The neighbours on an interface.
  static func neighbours(_ family: Int32, on index: Int32) -> NetlinkRequest {
    var fixed = ndmsg()
    fixed.ndm_family = UInt8(family)
    return NetlinkRequest(RTM_GETNEIGH, fixed, attribute: (NDA_IFINDEX, index))
  }

  private init(
    _ type: Int, _ fixed: some BitwiseCopyable, attribute: (type: Int, value: Int32)? = nil, isDump: Bool = true
  ) {
    var body = withUnsafeBytes(of: fixed) { Array($0) }
    if let attribute {
      let header = rtattr(rta_len: UInt16(MemoryLayout<rtattr>.size + 4), rta_type: UInt16(attribute.type))
      withUnsafeBytes(of: header) { body += $0 }
      withUnsafeBytes(of: attribute.value) { body += $0 }
    }
    let header = nlmsghdr(
      nlmsg_len: UInt32(MemoryLayout<nlmsghdr>.size + body.count), nlmsg_type: UInt16(type),
      nlmsg_flags: UInt16(NLM_F_REQUEST | (isDump ? NLM_F_ROOT | NLM_F_MATCH : 0)),
      nlmsg_seq: NetlinkRequest.sequence, nlmsg_pid: 0)
    octets = withUnsafeBytes(of: header) { Array($0) } + body
    self.isDump = isDump
  }

  /// Transforms the messages of the answer and drops nil. A table that the kernel does not have is empty.
  ///
  /// - Complexity: O(*n*) in the table; the kernel writes some 10,000 entries in a few milliseconds.
  func answer<Value>(_ transform: (NetlinkMessage) -> Value?) throws(NetworkWatchError) -> [Value] {
    var values: [Value] = []
    for _ in 0..<NetlinkRequest.attempts {
      values = []
      if try receive({ if let value = transform($0) { values.append(value) } }) { break }
    }
    return values
  }

  /// Sends the request and visits the messages of the answer. Returns false if the table changed during the read.
  private func receive(_ visit: (NetlinkMessage) -> Void) throws(NetworkWatchError) -> Bool {
    let descriptor = netlink_open(0)
    guard descriptor >= 0 else { throw NetworkWatchError(action: "netlink socket", code: errno) }
    defer { close(descriptor) }
    netlink_check_strictly(descriptor)
    guard netlink_send(descriptor, octets, octets.count) >= 0 else { throw failure(errno) }
    var buffer = [UInt8](repeating: 0, count: NetlinkRequest.datagramSize)
    var total = 0
    var isConsistent = true
    // The kernel answers during the send and continues with each read, so the socket always has data.
    while total < NetlinkRequest.longestAnswer {
      let count = netlink_receive(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(errno) }
      total += count
      for message in NetlinkMessages(buffer[..<count]) where message.sequence == NetlinkRequest.sequence {
        if message.flags & Int(NLM_F_DUMP_INTR) != 0 { isConsistent = false }
        if message.type == Int(NLMSG_DONE) { return isConsistent }
        if let code = message.error {
          if NetlinkRequest.absent.contains(code) { return true }
          throw failure(code)
        }
        visit(message)
        if !isDump { return true }
      }
    }
    return true
  }

  /// The kernel's errors for a table or an interface that does not exist.
  private static let absent = [ENOENT, ENODEV, EOPNOTSUPP, EAFNOSUPPORT]

  private func failure(_ code: Int32) -> NetworkWatchError { NetworkWatchError(action: "netlink request", code: code) }
}
