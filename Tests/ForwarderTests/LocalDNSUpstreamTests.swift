// LocalDNSUpstreamTests.swift -- what a failure of LocalDNS is called in the log.

import DNSWire
import Glibc
import LocalDNS
import Testing

@testable import Forwarder

@Suite struct LocalDNSUpstreamTests {
  @Test func `an error of the network has the kernel's words`() {
    let failure = UpstreamFailure(LocalDNSFailure.network(ECONNREFUSED))
    #expect(failure.reason == "Connection refused")
    #expect(failure.extendedError == .networkError)
  }
}
