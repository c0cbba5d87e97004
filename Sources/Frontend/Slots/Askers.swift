// Askers.swift -- the UDP queries that wait for one answer; recognizes a repeated query at once, however many wait.

import CEvent
import CSocket
import FairShares
import Glibc

/// Identifies a UDP query by its source, its ID and the socket and address that received it.
package struct Asker: Hashable {
  /// The client's address.
  fileprivate let address: IPNumber
  fileprivate let port: UInt16
  fileprivate let id: UInt16
  /// The socket that received the query, and the local address that it was sent to.
  fileprivate let descriptor: Int32
  fileprivate let local: LocalAddress

  fileprivate struct LocalAddress: Hashable {
    var high: UInt64
    var low: UInt64
  }

  /// - Parameters:
  ///   - peer: as the listener filled it.
  ///   - id: the message ID.
  init(_ peer: datagram_peer, id: UInt16, descriptor: Int32) {
    (address, port) = withUnsafePointer(to: peer.address) { (IPNumber($0), IPNumber.port($0)) }
    local = withUnsafeBytes(of: peer.local) { raw in
      LocalAddress(high: raw.loadUnaligned(as: UInt64.self), low: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }
    self.id = id
    self.descriptor = descriptor
  }
}

/// The UDP queries that wait for one answer.
///
/// - Complexity: O(1) for each query.
package struct Askers {
  /// How a query relates to those that already wait.
  package enum Relation {
    /// Its client does not wait yet.
    case new
    /// Its client already waits: the address is the same, and so is the port or the ID.
    case again
    /// It is the same query again: one answer is enough.
    case duplicate
  }

  private enum Mark: Hashable {
    case whole(Asker)
    case port(IPNumber, UInt16)
    case id(IPNumber, UInt16)
  }

  /// Most questions have one client: `marks` stays empty until a second query comes.
  private var first: Asker?
  private var marks: Set<Mark> = []
  /// Marks that were looked up or inserted so far, for tests.
  private(set) var steps = 0

  /// Starts without a waiting query.
  package init() {}

  /// How a new query relates to the waiting ones. Does not add it.
  package mutating func relation(of asker: Asker) -> Relation {
    guard let first else { return .new }
    if marks.isEmpty { note(first) }
    steps += 3
    guard !marks.contains(.whole(asker)) else { return .duplicate }
    let isKnown = marks.contains(.port(asker.address, asker.port)) || marks.contains(.id(asker.address, asker.id))
    return isKnown ? .again : .new
  }

  /// Adds a query to the waiting ones.
  package mutating func add(_ asker: Asker) {
    guard first != nil else { return first = asker }
    note(asker)
  }

  private mutating func note(_ asker: Asker) {
    steps += 3
    marks.formUnion([.whole(asker), .port(asker.address, asker.port), .id(asker.address, asker.id)])
  }
}
