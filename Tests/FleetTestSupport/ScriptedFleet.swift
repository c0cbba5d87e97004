// ScriptedFleet.swift -- connects a daemon's engine of the fleet with a scripted store.

import Configuration
import EventLoop
import Fleet

extension ScriptedStore {
  /// Connects a level, as its connections do when the store is up.
  ///
  /// - Returns: the connection for flushes.
  package func connect(_ level: FleetLevel, over link: ScriptedLink) -> ScriptedStream {
    link.onUp = { level.connected() }
    level.connected()
    let stream = stream()
    level.onLoss = { stream.connect() }
    stream.onChange = { level.follower.connected($0) }
    stream.read {
      level.follower.nextRead
    } _: { reply in
      level.follower.received(reply)
    }
    return stream
  }

  /// A daemon of the site with the default settings.
  ///
  /// - Parameters:
  ///   - start: tells its starts apart.
  ///   - ledger: what it knows of its units.
  package func join(
    _ number: Int, secret: [UInt8]?, start: UInt8, ledger: FleetLedger,
    note: @escaping @Sendable (FleetNote) -> Void
  ) -> (level: FleetLevel, stream: ScriptedStream) {
    let link = link()
    let level = FleetLevel(
      FleetKeys(namespace: "httpdnsd", site: "", secret: secret), Configuration().fleet, over: link, on: loop,
      identity: [UInt8](repeating: UInt8(number), count: 15) + [start],
      member: FleetMember(id: "\(number).\(start)", version: "1", fingerprint: "f.s.r", host: "h\(number)"),
      ledger: ledger, note: note)
    return (level, connect(level, over: link))
  }
}
