// NetworkWatch.swift -- reports that this machine's links, addresses or routes have changed.
//
// On the loop's thread only. Wakes up only for the kernel's events; it does not poll.

import CNetlink
import DNSWire
import EventLoop
import Glibc

/// Subscribes to the kernel's network events (rtnetlink(7)) until it is released. Loop thread only.
///
/// A burst is reported once, after 500 ms without an event. A burst that does not end is reported every 5 s.
public final class NetworkWatch {
  private let loop: EventLoop
  private let clock: () -> BootInstant
  private let descriptor: Int32
  private let changed: (NetworkChange) -> Void
  private var event: LoopEvent?
  private let timer = OwnedTimer()
  private var state: NetworkState
  private var delay = ReportDelay()
  private var pending: NetworkChange = []
  /// A gateway whose link-layer address is pending; subscribes to neighbour events only meanwhile.
  private var awaited: NextHop?

  /// Maximum datagrams per turn of the loop; the next turn reads the rest.
  private static let datagramsPerTurn = 64

  /// Calls `changed` shortly after a change.
  ///
  /// - Throws: the error of the system call. The daemon can run without this watch; it then notices a change by
  ///   timeouts.
  public convenience init(on loop: EventLoop, changed: @escaping (NetworkChange) -> Void) throws(NetworkWatchError) {
    try self.init(on: loop, clock: { loop.now }, changed: changed)
  }

  /// - Parameter clock: returns the current time; the timers are the loop's.
  init(
    on loop: EventLoop, clock: @escaping () -> BootInstant, changed: @escaping (NetworkChange) -> Void
  ) throws(NetworkWatchError) {
    let groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE
    // Subscribe before reading the state: a change in between is then seen twice instead of never.
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
    event = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.readable() }
  }

  deinit {
    event = nil
    timer.cancel()
    close(descriptor)
  }

  /// Reads the identity of the current network.
  ///
  /// If it is incomplete, `changed` is called with `.gateway` when the kernel learns the gateway's link-layer address,
  /// which happens when a packet is sent to it.
  ///
  /// - Complexity: three or four requests to the kernel, well below a millisecond on a machine with few routes.
  public func identity() throws(NetworkWatchError) -> NetworkIdentity {
    var reading = try IdentityReading.read()
    listen(for: reading.unresolved)
    if reading.unresolved != nil {
      // The kernel may have learned it before the subscription.
      reading = try IdentityReading.read()
      listen(for: reading.unresolved)
    }
    return reading.identity
  }

  /// Whether there is a default route of a family that packets can take.
  public func hasDefaultRoute(isIPv6: Bool) -> Bool { state.hasDefaultRoute(isIPv6: isIPv6) }

  /// Reads the footing of connections to those destinations; nil if the kernel does not answer.
  public func footing(toward destinations: Set<IPAddress>) -> NetworkFooting? {
    guard let identity = try? IdentityReading.read().identity else { return nil }
    return NetworkFooting(
      identity: identity, defaultRoutes: state.defaultRoutes, addresses: state.ownAddresses,
      destinations: destinations, sources: NetworkFooting.sources(toward: destinations))
  }

  /// Makes the kernel resolve the link-layer address that the last `identity` lacked, with an empty datagram to the
  /// gateway's discard port (RFC 863). Otherwise the kernel resolves it with the next packet, which may delay a
  /// client's query.
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
    if delay.due != nil, !timer.isSet { schedule() }
    if isResolved { changed(.gateway) }
  }

  /// Reads the pending events; returns true if the pending gateway was resolved.
  private func receive() -> Bool {
    var buffer = [UInt8](repeating: 0, count: NetlinkRequest.datagramSize)
    var isResolved = false
    for _ in 0..<NetworkWatch.datagramsPerTurn {
      let count = netlink_receive(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { break }
      // ENOBUFS: the kernel dropped events. The failed read has cleared the error.
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

  /// Sets one timer per burst, and again if the burst continued.
  private func schedule() {
    guard let due = delay.due else { return }
    timer.set(at: due, on: loop, for: self) { $0.report() }
  }

  private func report() {
    guard delay.take(at: clock()) else { return schedule() }
    let change = pending
    pending = []
    // The kernel removes some routes without an event when their address or link is removed. If it does not answer, the
    // state from the events stays.
    if let read = try? NetworkState.read() { state = read }
    changed(change)
  }
}
