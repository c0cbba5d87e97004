// TCPConnectionTable.swift -- the connections of all listeners, within their limits (RFC 7766 section 6.2.3).
//
// Nobody is shut out by connections that do nothing: when all places are taken, a newcomer gets one of theirs.

import EventLoop
import FairShares

/// What a listener allows.
public struct TCPLimits: Sendable {
  /// Connections in all.
  public var connections: Int
  /// Connections of one client: an IPv4 address, or an IPv6 /56.
  public var perClient: Int
  /// How long a connection may be silent with nothing in flight, while there is plenty of room.
  public var idle: Duration

  /// The three limits.
  public init(connections: Int, perClient: Int, idle: Duration) {
    self.connections = connections
    self.perClient = perClient
    self.idle = idle
  }
}

/// Counts connections over all listeners, in all and per client. Loop thread only.
public final class TCPConnectionTable {
  /// What became of a newcomer for which there was no free place.
  public struct Shortage: Sendable {
    /// The newcomer.
    public var client: SocketAddress
    /// Whether the newcomer was turned away; otherwise it has the place of another connection.
    public var isRefused: Bool
    /// Whether it was its client that could have no more; otherwise all places were taken.
    public var isOwnLimit: Bool
    /// Who has the most connections, and how many.
    public var most: (client: SocketAddress, count: Int)
  }

  /// The limits that hold over all listeners.
  public let limits: TCPLimits
  /// Connections that were closed on arrival because a limit was reached.
  public private(set) var refused: UInt64 = 0
  /// Connections that were closed for a newcomer.
  public private(set) var displaced: UInt64 = 0
  /// Called for each newcomer for which there was no free place.
  public var onShortage: ((Shortage) -> Void)?
  private var places = TCPPlaces()
  /// By place.
  private var connections: [TCPConnection?] = []
  private var loop: EventLoop?
  private var timer: LoopTimer?

  /// What remains of the idle timeout when all places are taken: a tenth, but no less than this.
  private static let leastIdle = Duration.seconds(1)

  /// An empty table.
  public init(limits: TCPLimits) { self.limits = limits }

  /// Open connections.
  public var count: Int { places.count }

  /// How long a connection may currently be silent: less and less, from the time on that half of the places are taken.
  public var idleTimeout: Duration {
    let half = limits.connections / 2
    guard count > half else { return limits.idle }
    let free = limits.idle.nanoseconds / Int64(limits.connections - half) * Int64(limits.connections - count)
    return max(.nanoseconds(free), limits.idle / 10, min(limits.idle, TCPConnectionTable.leastIdle))
  }

  /// Whether a newcomer gets a place; another connection may be closed for it.
  ///
  /// - Complexity: O(log n)
  func admits(_ peer: SocketAddress, now: BootInstant) -> Bool {
    let client = ClientKey(peer)
    let isOwnLimit = places.count(of: client) >= limits.perClient
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

  /// Adds a connection: its place.
  func add(_ connection: TCPConnection, on loop: EventLoop) -> Int {
    self.loop = loop
    let place = places.add(ClientKey(connection.client), now: loop.now)
    while connections.count <= place { connections.append(nil) }
    connections[place] = connection
    armTimer()
    return place
  }

  func remove(_ place: Int) {
    connections[place] = nil
    places.remove(place)
    if count == 0 { timer?.cancel() }
  }

  /// Something has passed over a connection.
  func use(_ place: Int) { if let loop { places.use(place, now: loop.now) } }

  /// Whether a connection has nothing to do.
  func set(_ place: Int, isIdle: Bool) { if let loop { places.set(place, isIdle: isIdle, now: loop.now) } }

  /// One timer for all, for the connection that was not used for longest: when it fires early, because of a use in between,
  /// it is set again for the rest.
  private func armTimer() {
    guard let loop, let (_, lastUse) = places.leastUsed else { return }
    let deadline = lastUse + idleTimeout
    if let timer, timer.isPending, timer.deadline <= deadline { return }
    timer?.cancel()
    timer = loop.schedule(at: deadline) { [weak self] in self?.closeSilent() }
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

  /// Stops reading on every connection: what is in flight is still answered, then each is closed.
  public func drain() {
    for connection in connections { connection?.drain() }
  }

  /// Closes every connection now.
  public func closeAll() {
    for connection in connections { connection?.close() }
  }
}
