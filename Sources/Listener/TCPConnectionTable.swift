// TCPConnectionTable.swift -- the connections of all listeners, within their limits (RFC 7766 section 6.2.3).
//
// Idle connections cannot block others: when the table is full, a new connection replaces an idle one.

import EventLoop
import FairShares
import Streams

/// The limits of TCP connections.
public struct TCPLimits: Sendable {
  /// The largest number of connections.
  public var connections: Int
  /// The largest number of connections from one client: an IPv4 address or an IPv6 /56.
  public var perClient: Int
  /// The idle timeout while fewer than half of the connections are open.
  public var idle: Duration
  /// Queries in flight on one connection at which reading pauses.
  public var inFlight = 256
  /// Octets of unsent answers at which reading pauses.
  public var unsent = 1 << 20
  /// The most time for a TLS handshake, and for a client that takes none of its answers; nil for any.
  public var patience: StreamPatience?

  public init(connections: Int, perClient: Int, idle: Duration) {
    self.connections = connections
    self.perClient = perClient
    self.idle = idle
  }
}

/// A connection that has a place in a table. Loop thread only.
public protocol PlacedConnection: AnyObject {
  /// Who is at the other end: for limits, rules and logs.
  var client: SocketAddress { get }
  /// A number of its owner's.
  var mark: Int { get }
  /// Whether a query is waiting for its answer while the client takes all other answers.
  var waits: Bool { get }
  /// Closes at once, and leaves the table.
  func close()
  /// Stops reading, and closes when all queries in flight are answered and all answers are sent.
  func drain()
}

/// Counts the connections of all listeners, in total and per client. Loop thread only.
public final class TCPConnectionTable {
  /// The outcome for a new connection that found no free place.
  public struct Shortage: Sendable {
    /// The client of the new connection.
    public var client: SocketAddress
    /// Whether the new connection was refused; otherwise it replaced another one.
    public var isRefused: Bool
    /// Whether its client had reached its limit; otherwise the table was full.
    public var isOwnLimit: Bool
    /// The client with the most connections, and their number.
    public var most: (client: SocketAddress, count: Int)
  }

  /// The limits for all listeners together.
  public let limits: TCPLimits
  /// Connections refused because a limit was reached.
  public private(set) var refused: UInt64 = 0
  /// Connections closed in favour of a new one.
  public private(set) var displaced: UInt64 = 0
  /// Called for each new connection that found no free place.
  public var onShortage: ((Shortage) -> Void)?
  /// What all connections read into and gather answers in.
  let buffers = TCPBuffers()
  private var places = TCPPlaces()
  private var connections: [(any PlacedConnection)?] = []
  private var loop: EventLoop?
  private let timer = OwnedTimer()

  /// The lower bound of the idle timeout of a full table, which is a tenth of `limits.idle`.
  private static let leastIdle = Duration.seconds(1)

  public init(limits: TCPLimits) { self.limits = limits }

  /// The number of open connections.
  public var count: Int { places.count }

  /// The current idle timeout, which shrinks once half of the connections are open.
  public var idleTimeout: Duration {
    let half = limits.connections / 2
    guard count > half else { return limits.idle }
    let free = limits.idle.nanoseconds / Int64(limits.connections - half) * Int64(limits.connections - count)
    return max(.nanoseconds(free), limits.idle / 10, min(limits.idle, TCPConnectionTable.leastIdle))
  }

  /// Whether a new connection is admitted. May close another connection for it.
  ///
  /// - Parameter isProxy: whether the peer passes on queries of many clients, whose number of connections says nothing.
  /// - Complexity: O(log n)
  public func admits(_ peer: SocketAddress, isProxy: Bool = false, now: BootInstant) -> Bool {
    let client = ClientKey(peer)
    let isOwnLimit = !isProxy && places.count(of: client) >= limits.perClient
    guard isOwnLimit || count >= limits.connections else { return true }
    let place = isOwnLimit ? places.placeOfItsOwn(client) : places.placeOfAnother(client, now: now)
    if let onShortage, let most = places.most, let holder = connections[most.place] {
      onShortage(
        Shortage(client: peer, isRefused: place == nil, isOwnLimit: isOwnLimit, most: (holder.client, most.count)))
    }
    guard let place, let connection = connections[place] else {
      refused &+= 1
      return false
    }
    displaced &+= 1
    connection.close()
    return true
  }

  /// Gives a connection that was admitted its place, a number for the calls below.
  public func add(_ connection: any PlacedConnection, on loop: EventLoop) -> Int {
    self.loop = loop
    let place = places.add(ClientKey(connection.client), now: loop.now)
    while connections.count <= place { connections.append(nil) }
    connections[place] = connection
    armTimer()
    return place
  }

  /// Frees a place.
  public func remove(_ place: Int) {
    connections[place] = nil
    places.remove(place)
    if count == 0 { timer.cancel() }
  }

  /// Records activity on a connection.
  public func use(_ place: Int) { if let loop { places.use(place, now: loop.now) } }

  /// Records whether a connection is idle.
  public func set(_ place: Int, isIdle: Bool) { if let loop { places.set(place, isIdle: isIdle, now: loop.now) } }

  /// Sets the single timer for the least recently used connection. If that is used before the timer fires, the timer is set
  /// again for the remaining time.
  private func armTimer() {
    guard let loop, let (_, lastUse) = places.leastUsed else { return }
    let deadline = lastUse + idleTimeout
    if let set = timer.deadline, set <= deadline { return }
    timer.set(at: deadline, on: loop, for: self) { $0.closeSilent() }
  }

  private func closeSilent() {
    guard let loop else { return }
    while let (place, lastUse) = places.leastUsed, loop.now - lastUse >= idleTimeout,
      let connection = connections[place]
    {
      if connection.waits { places.use(place, now: loop.now) } else { connection.close() }
    }
    armTimer()
  }

  /// Calls `body` with each connection; it may close them.
  public func forEach(_ body: (any PlacedConnection) -> Void) {
    for case let connection? in connections { body(connection) }
  }

  /// Stops reading on every connection; each closes after its queries in flight are answered.
  public func drain() {
    forEach { $0.drain() }
  }

  /// Closes every connection at once.
  public func closeAll() {
    forEach { $0.close() }
  }
}
