// NetlinkSetKernel.swift -- the real nf_tables, by netlink. No nft(8) is run.

import Configuration
import CFirewall
import DNSWire
import Glibc

/// The kernel of the network namespace in which the first function is called.
final class NetlinkSetKernel: SetKernel {
  private var socket: FirewallSocket?

  init() {}

  func generation() throws(SetFailure) -> UInt32 {
    var generation: UInt32 = 0
    try ask(Int(NFT_MSG_GETGEN.rawValue), family: UInt16(AF_UNSPEC)) { _ in
    } visit: {
      if firewall_is($0, Int32(NFT_MSG_NEWGEN.rawValue)) { generation = firewall_generation($0) }
    }
    return generation
  }

  func describe(_ set: FirewallSetName) throws(SetFailure) -> SetDescription {
    let wanted = SetMessage(set)
    var found: SetMessage?
    do {
      try ask(Int(NFT_MSG_GETSET.rawValue), family: set.family.number) {
        nftnl_set_nlmsg_build_payload($0, wanted.pointer)
      } visit: {
        if firewall_is($0, Int32(NFT_MSG_NEWSET.rawValue)) { found = SetMessage(set: $0) }
      }
    } catch .missing {
      throw try hasTable(set) ? .missing : .missingTable
    }
    guard let found else { throw .error("the kernel's description cannot be read") }
    return try found.description()
  }

  private func hasTable(_ set: FirewallSetName) throws(SetFailure) -> Bool {
    let table = nftnl_table_alloc()!
    defer { nftnl_table_free(table) }
    nftnl_table_set_str(table, UInt16(NFTNL_TABLE_NAME.rawValue), set.table)
    do {
      try ask(Int(NFT_MSG_GETTABLE.rawValue), family: set.family.number) {
        nftnl_table_nlmsg_build_payload($0, table)
      } visit: { _ in
      }
      return true
    } catch .missing {
      return false
    }
  }

  func life(
    of address: IPAddress, in set: FirewallSetName, _ description: SetDescription
  ) throws(SetFailure) -> ElementLife? {
    guard let element = try element(address.octets, of: set) else { return nil }
    guard description.isInterval else { return element.life }
    // The kernel replies with the beginning of the interval that contains an address. An interval of one address begins with
    // it and does not contain the next one. (How a look-up of ends behaves depends on the kernel's version.)
    guard element.key == address.octets else { return .covered }
    guard let next = address.next else { return element.life }
    return try self.element(next, of: set)?.key == element.key ? .covered : element.life
  }

  /// The element of a key, or in a set of intervals the beginning of the one around it.
  private func element(
    _ key: [UInt8], of set: FirewallSetName
  ) throws(SetFailure) -> (key: [UInt8], life: ElementLife)? {
    let wanted = SetMessage(set)
    wanted.add(key)
    var found: (key: [UInt8], life: ElementLife)?
    do {
      try ask(Int(NFT_MSG_GETSETELEM.rawValue), family: set.family.number) {
        nftnl_set_elems_nlmsg_build_payload($0, wanted.pointer)
      } visit: {
        if firewall_is($0, Int32(NFT_MSG_NEWSETELEM.rawValue)) { found = SetMessage(elements: $0)?.firstElement }
      }
    } catch .missing {
      return nil
    }
    return found
  }

  func commit(_ changes: [SetChange], in generation: UInt32) throws(CommitFailure) {
    var messages: [(type: Int, family: UInt16, compose: (UnsafeMutablePointer<nlmsghdr>) -> Void)] = []
    // Of each message, the change that it is a part of.
    var owners: [Int] = []
    for (index, change) in changes.enumerated() {
      for (type, elements) in change.messages {
        let body = SetMessage(change.set)
        for element in elements { body.add(element, isInterval: change.description.isInterval) }
        messages.append((type, change.set.family.number, { nftnl_set_elems_nlmsg_build_payload($0, body.pointer) }))
        owners.append(index)
      }
    }
    let refusal: (index: Int, code: Int32)?
    do {
      refusal = try opened().commit(in: generation, messages)
    } catch {
      if error.code == ERESTART { throw .generationEnded }
      throw .failed(failure(error))
    }
    if let refusal {
      // A process without the capability gets no further than to the beginning of a batch.
      let failure = refusal.code == EPERM ? SetFailure.owned : SetFailure(code: refusal.code)
      throw .refused(index: owners[refusal.index], failure)
    }
  }

  /// One request. `SetFailure.missing` stands for whatever was asked for.
  private func ask(
    _ type: Int, family: UInt16, compose: (UnsafeMutablePointer<nlmsghdr>) -> Void,
    visit: (UnsafePointer<nlmsghdr>) -> Void
  ) throws(SetFailure) {
    do {
      try opened().request(type, family, compose: compose, visit: visit)
    } catch {
      throw failure(error)
    }
  }

  private func opened() throws(KernelError) -> FirewallSocket {
    if let socket { return socket }
    let opened = try FirewallSocket()
    socket = opened
    return opened
  }

  /// Late replies do not disturb, since they have other sequence numbers; but lost ones may have been lost for a reason that
  /// stays with the socket.
  private func failure(_ error: KernelError) -> SetFailure {
    if error.code == EAGAIN || error.code == ENOBUFS { socket = nil }
    return SetFailure(code: error.code)
  }
}

extension SetChange {
  /// Messages that add new elements, and prolong those that are there. Before Linux 6.12 adding an element again leaves its
  /// old timeout, so that it is deleted first. Since it may expire at any moment, and deleting what is not there is an
  /// error, it is added before that.
  fileprivate var messages: [(type: Int, elements: [SetElement])] {
    let present = elements.filter(\.isPresent)
    let add = Int(NFT_MSG_NEWSETELEM.rawValue)
    let delete = Int(NFT_MSG_DELSETELEM.rawValue)
    guard !present.isEmpty else { return [(add, elements)] }
    return [(add, present), (delete, present), (add, elements)]
  }
}

extension FirewallSetName.Family {
  fileprivate var number: UInt16 {
    switch self {
    case .inet: UInt16(NFPROTO_INET)
    case .ip: UInt16(NFPROTO_IPV4)
    case .ip6: UInt16(NFPROTO_IPV6)
    }
  }
}

extension SetFailure {
  /// The meaning of an error number.
  fileprivate init(code: Int32) {
    switch code {
    case ENOENT: self = .missing
    case EPERM, EACCES: self = .notPermitted
    case ENFILE: self = .full
    case EOPNOTSUPP, EPROTONOSUPPORT, EAFNOSUPPORT: self = .unsupported
    case EAGAIN: self = .noReply
    default: self = .error(String(cString: strerror(code)))
    }
  }
}
