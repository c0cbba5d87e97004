// CertificateClockTests.swift -- which time certificates are checked by, and what teaches it.

import EventLoop
import Testing

@testable import HTTPClient

@Suite struct CertificateClockTests {
  private let start = BootInstant(nanoseconds: 5_000_000_000)

  @Test func `the machine's clock is believed from the day of the build on`() {
    for (wallTime, time) in [(1000, nil), (999, 1000), (0, 1000), (1_000_000, nil)] as [(Int64, Int64?)] {
      #expect(CertificateClock(buildTime: 1000) { wallTime }.checkTime(now: start) == time)
    }
  }

  @Test func `a learned time advances by the boot-time clock and never goes back`() {
    let clock = CertificateClock(buildTime: 1000) { 10 }
    clock.learn(500, now: start)
    #expect(clock.checkTime(now: start) == 1000)
    clock.learn(5000, now: start)
    #expect(clock.checkTime(now: start + .seconds(60)) == 5060)
    clock.learn(5010, now: start + .seconds(60))
    #expect(clock.checkTime(now: start + .seconds(60)) == 5060)
    clock.learn(6000, now: start + .seconds(60))
    #expect(clock.checkTime(now: start + .seconds(61)) == 6001)
  }

  @Test func `no time is learned from which on no certificate would be valid`() {
    let clock = CertificateClock(buildTime: 1000) { 10 }
    for date: Int64 in [1000 + 21 * 366 * 86_400, 253_402_300_799, .max] {
      clock.learn(date, now: start)
      #expect(clock.checkTime(now: start) == 1000)
    }
    clock.learn(1000 + 19 * 365 * 86_400, now: start)
    #expect(clock.isTimeKnown)
  }

  @Test func `the time is known from the machine's clock or from a response`() {
    #expect(CertificateClock(buildTime: 1000) { 1000 }.isTimeKnown)
    let clock = CertificateClock(buildTime: 1000) { 10 }
    clock.learn(500, now: start)
    #expect(!clock.isTimeKnown)
    clock.learn(5000, now: start)
    #expect(clock.isTimeKnown)
  }

  @Test func `no time is learned while the machine's clock can be right`() {
    let clock = CertificateClock(buildTime: 1000) { 2000 }
    clock.learn(9000, now: start)
    #expect(clock.checkTime(now: start) == nil)
  }

  @Test func `the day of the build is read from C's form`() {
    #expect(CertificateClock.seconds(of: "Jan  1 1970") == 0)
    #expect(CertificateClock.seconds(of: "Nov 21 2026") == 1_795_219_200)
    #expect(CertificateClock.seconds(of: "Smarch 1 2026") == nil)
    #expect(CertificateClock.dayOfBuild > 1_700_000_000)
  }
}
