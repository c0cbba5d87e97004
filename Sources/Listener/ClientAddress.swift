// ClientAddress.swift -- whom a connection is counted for.

import EventLoop
import FairShares

extension ClientKey {
  /// The client at that address.
  package init(_ address: SocketAddress) { self = withUnsafePointer(to: address.storage) { ClientKey($0) } }
}
