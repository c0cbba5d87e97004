// FixedSettings.swift -- settings that cannot change while the daemon runs: sockets, preallocated memory, open files.

import Configuration

extension Configuration {
  /// Takes the settings that cannot change from the running configuration.
  ///
  /// - Returns: the keys that would have changed.
  mutating func keepFixed(of running: Configuration) -> [String] {
    var keys: [String] = []
    func keep<Value: Equatable>(_ key: String, _ path: WritableKeyPath<Configuration, Value>) {
      guard self[keyPath: path] != running[keyPath: path] else { return }
      self[keyPath: path] = running[keyPath: path]
      keys.append(key)
    }
    keep("state_directory", \.stateDirectory)
    keep("listen.addresses", \.listen.addresses)
    keep("listen.workers", \.listen.workers)
    keep("listen.max_udp_payload", \.listen.maxUDPPayload)
    keep("listen.tcp_connections", \.listen.tcpConnections)
    keep("listen.tcp_per_client", \.listen.tcpPerClient)
    keep("listen.tcp_idle", \.listen.tcpIdle)
    keep("listen.max_in_flight", \.listen.maxInFlight)
    keep("cache.enabled", \.cache.isEnabled)
    keep("cache.max_bytes", \.cache.maxBytes)
    keep("cache.max_entries", \.cache.maxEntries)
    keep("cache.persist", \.cache.persist)
    keep("control.socket", \.control.socket)
    keep("control.group", \.control.group)
    keep("web.address", \.web.address)
    return keys
  }
}
