// FixedSettings.swift -- settings that cannot change while the daemon runs: sockets, preallocated memory, open files.

import Configuration

extension Configuration {
  /// Takes the settings that cannot change from the running configuration.
  ///
  /// - Returns: the keys that would have changed.
  mutating func keepFixed(of running: Configuration) -> [String] {
    var keys: [String] = []
    func restore<Value: Equatable>(_ key: String, _ path: WritableKeyPath<Configuration, Value>) {
      guard self[keyPath: path] != running[keyPath: path] else { return }
      self[keyPath: path] = running[keyPath: path]
      keys.append(key)
    }
    restore("state_directory", \.stateDirectory)
    restore("listen.addresses", \.listen.addresses)
    restore("listen.workers", \.listen.workers)
    restore("listen.max_udp_payload", \.listen.maxUDPPayload)
    restore("listen.tcp_connections", \.listen.tcpConnections)
    restore("listen.tcp_per_client", \.listen.tcpPerClient)
    restore("listen.tcp_idle", \.listen.tcpIdle)
    restore("listen.max_in_flight", \.listen.maxInFlight)
    let given = encrypted
    restore("encrypted.dot", \.encrypted.dot)
    restore("encrypted.doh", \.encrypted.doh)
    restore("encrypted.doh_plain", \.encrypted.dohPlain)
    // What is left of a removed section would let other clients in.
    if !given.hasListeners, running.encrypted.hasListeners { encrypted = running.encrypted }
    if encrypted.usesCertificate {
      encrypted.certificateFile = encrypted.certificateFile ?? running.encrypted.certificateFile
      encrypted.keyFile = encrypted.keyFile ?? running.encrypted.keyFile
    }
    restore("encrypted.connections", \.encrypted.connections)
    restore("encrypted.per_client", \.encrypted.perClient)
    restore("encrypted.idle", \.encrypted.idle)
    restore("cache.enabled", \.cache.isEnabled)
    restore("cache.max_bytes", \.cache.maxBytes)
    restore("cache.max_entries", \.cache.maxEntries)
    restore("cache.persist", \.cache.persist)
    restore("control.socket", \.control.socket)
    restore("control.group", \.control.group)
    restore("web.address", \.web.address)
    return keys
  }
}
