// CountingUpstream.swift -- the upstreams whose counters outlive a reload.

/// A provider that counts its transfers. After a reload, the provider of the same name continues the counters.
protocol CountingUpstream: Upstream {
  var counters: SharedProviderCounters { get set }
}

extension HTTPDNSProvider: CountingUpstream {}
extension TableProvider: CountingUpstream {}
