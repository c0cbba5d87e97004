// NetworkWatch.swift -- tells when this machine's links, addresses or routes have become others.
//
// On the loop's thread only. It wakes up when the kernel has news, and never by itself.

import CNetlink
import DNSWire
import EventLoop
import Glibc

/// Listens to the kernel's news of the network (rtnetlink(7)). Ends with the object. Loop thread only.
///
/// A burst is reported once, when nothing came for 500 ms; one that does not end, after 5 s, and so on.
public final class NetworkWatch {
  private let loop: EventLoop
  private let clock: () -> BootInstant
  private let descriptor: Int32
  private let changed: (NetworkChange) -> Void
  private var event: LoopEvent?
  private var timer: LoopTimer?
  private var state: NetworkState
  private var delay = ReportDelay()
  private var pending: NetworkChange = []
  /// A gateway whose link-layer address is waited for; only then are neighbours listened to.
  private var awaited: NextHop?

  /// How many datagrams are read in a turn of the loop; what is left is read in the next.
  private static let datagramsPerTurn = 64

  /// Calls `changed` a moment after something has changed.
  ///
  /// - Throws: what the system refused. Without this watch everything else goes on; a change is then noticed by timeouts.
  public convenience init(
    on loop: EventLoop, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    try self.init(on: loop, clock: { loop.now }, changed: changed)
  }

  /// - Parameter clock: what the time is; the timers are the loop's.
  init(
    on loop: EventLoop, clock: @escaping () -> BootInstant, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    let groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE
    // Subscribed before the state is read: what happens between is then told twice, and not missed.
    let descriptor = netlink_open(UInt32(groups))
    guard descriptor >= 0 else { throw NetworkWatchError(action: "netlink socket", code: errno) }
    do {
      state = try NetworkState.read()
    } catch {
      close(descriptor)
      throw error
    }
    self.descriptor = descriptor
    self.loop = loop
    self.clock = clock
    self.changed = changed
    event = LoopEvent(on: loop, descriptor: descriptor, .read) { [unowned self] _ in readable() }
  }

  deinit {
    event = nil
    timer?.cancel()
    close(descriptor)
  }

  /// The network that this machine is in now.
  ///
  /// Where it is not complete yet, `changed` is called with `.gateway` as soon as the kernel has learned the gateway's
  /// link-layer address, which it does when something is sent to it.
  ///
  /// - Complexity: three or four requests to the kernel, well below a millisecond on a machine with few routes.
  public func identity() throws(NetworkWatchError) -> NetworkIdentity {
    var reading = try IdentityReading.read()
    listen(for: reading.unresolved)
    if reading.unresolved != nil {
      // It may have been learned before we listened.
      reading = try IdentityReading.read()
      listen(for: reading.unresolved)
    }
    return reading.identity
  }

  /// What connections to those addresses stand on now; nil where the kernel does not answer.
  public func footing(toward destinations: Set<IPAddress>) -> NetworkFooting? {
    guard let identity = try? IdentityReading.read().identity else { return nil }
    return NetworkFooting(
      identity: identity, defaultRoutes: state.defaultRoutes, addresses: state.ownAddresses,
      destinations: destinations, sources: NetworkFooting.sources(toward: destinations))
  }

  /// Makes the kernel learn the link-layer address that the last `identity` lacked: by an empty datagram to the gateway's
  /// discard port (RFC 863). Otherwise it is learned when something else goes that way, which may be a client's question.
  public func knock() {
    guard let awaited, let gateway = awaited.gateway else { return }
    gateway.octets.withUnsafeBufferPointer { neighbour_knock($0.baseAddress!, $0.count, UInt32(awaited.index)) }
  }

  private func listen(for neighbour: NextHop?) {
    if (awaited == nil) != (neighbour == nil) {
      _ = netlink_subscribe(descriptor, Int32(RTNLGRP_NEIGH.rawValue), neighbour == nil ? 0 : 1)
    }
    awaited = neighbour
  }

  private func readable() {
    let isResolved = receive()
    if delay.due != nil, timer == nil { schedule() }
    if isResolved { changed(.gateway) }
  }

  /// Reads what is there; true when the awaited gateway was among it.
  private func receive() -> Bool {
    var buffer = [UInt8](repeating: 0, count: NetlinkRequest.datagramSize)
    var isResolved = false
    for _ in 0..<NetworkWatch.datagramsPerTurn {
      let count = netlink_receive(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { break }
      // ENOBUFS: the kernel had to throw news away. Reading has cleared it.
      guard count >= 0 else {
        note(.lostEvents)
        continue
      }
      for message in NetlinkMessages(buffer[..<count]) {
        note(state.apply(message))
        if let neighbour = NeighbourMessage(message), let awaited, neighbour.index == awaited.index,
          neighbour.address == awaited.gateway
        {
          listen(for: nil)
          isResolved = true
        }
      }
    }
    return isResolved
  }

  private func note(_ change: NetworkChange) {
    guard !change.isEmpty else { return }
    pending.formUnion(change)
    delay.note(at: clock())
  }

  /// One timer for a burst: where the burst went on meanwhile, it is set once more.
  private func schedule() {
    guard let due = delay.due else { return }
    timer = loop.schedule(at: due) { [weak self] in
      self?.timer = nil
      self?.report()
    }
  }

  private func report() {
    guard delay.take(at: clock()) else { return schedule() }
    let change = pending
    pending = []
    // Some routes go without a word when their address or link does. Where the kernel does not answer, what the events
    // said stands.
    if let read = try? NetworkState.read() { state = read }
    changed(change)
  }
}
