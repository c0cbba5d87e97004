// ClientAddress.swift -- the key by which the connections of a client are counted.

import EventLoop
import FairShares

extension ClientKey {
  package init(_ address: SocketAddress) { self = withUnsafePointer(to: address.storage) { ClientKey($0) } }
}
