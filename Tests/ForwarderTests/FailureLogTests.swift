// FailureLogTests.swift -- an upstream with ever new failures does not fill the log.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import LocalDNS
import Telemetry
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `Failures in the log` {
  private let lines = LogLines()
  private let log: OccasionalLog

  init() { log = OccasionalLog(lines.logger) { _, _ in } }

  private func note(_ failure: UpstreamFailure, at second: Int, of name: String = "p") {
    log.log(failure, of: name, now: BootInstant(nanoseconds: Int64(second) * 1_000_000_000))
  }

  @Test func `1,500 failures with ever other codes are two lines a minute`() {
    for number in 0..<750 {
      note(.refused(ResponseCode(rawValue: UInt16(number)), by: "192.0.2.1"), at: number / 25)
      note(UpstreamFailure(HTTPDNSFailure.status(100 + number)), at: number / 25)
    }
    #expect(lines.all.count == 2)
    // The text says which one came first.
    #expect(lines.all.contains("warning provider p: HTTP status 100"))
  }

  @Test func `other failures, and those of another provider, have lines of their own`() {
    for second in 0..<50 {
      note(UpstreamFailure(HTTPFailure(.certificate, "subject \(second)")), at: second)
      note(UpstreamFailure(HTTPFailure(.timeout, "late by \(second)")), at: second)
      note(UpstreamFailure(HTTPDNSFailure.unreadable(.syntax)), at: second)
      note(UpstreamFailure(HTTPDNSFailure.unreadable(.chain)), at: second)
      note(UpstreamFailure(HTTPFailure(.timeout, "late")), at: second, of: "q")
      note(.refused(.refused, by: nil), at: second, of: "localdns")
    }
    #expect(lines.all.count == 6)
  }

  @Test func `a failure of LocalDNS names the resolvers that were asked`() {
    var failure = UpstreamFailure(LocalDNSFailure.timedOut)
    failure.steps = ["192.0.2.53:53, 192.0.2.54:53: no answer in time"]
    note(failure, at: 0, of: "localdns")
    #expect(lines.all == ["warning localdns: 192.0.2.53:53, 192.0.2.54:53: no answer in time"])
  }

  @Test func `each bound of ours that is reached has a line a minute, which names its key`() {
    let bounds = ShareLimit.allCases.map { ReachedBound.share($0) } + [.subnetsPerName]
    for second in 0..<60 {
      let now = BootInstant(nanoseconds: Int64(second) * 1_000_000_000)
      for bound in bounds { log.log(bound, now: now) }
    }
    #expect(lines.all.count == bounds.count)
    for key in ["misses_per_client", "misses_per_domain", "max_in_flight", "subnets_per_name"] {
      #expect(lines.all.contains { $0.hasPrefix("warning ") && $0.contains(key) }, "\(key)")
    }
  }

  @Test func `a network that changes its mind each second has a few lines a minute`() {
    let network = NetworkLog(log)
    for second in 0..<60 {
      let now = BootInstant(nanoseconds: Int64(second) * 1_000_000_000)
      network.log("resolvers", "the network's resolvers: \(second)", at: now)
    }
    #expect(lines.all == (0..<4).map { "info the network's resolvers: \($0)" })
  }
}
