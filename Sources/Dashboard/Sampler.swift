// Sampler.swift -- reads the statistics every minute, and every two seconds while a page is open. Loop's thread only.
//
// Each sample is the difference to the reading before. The two rings join without holes: the first short sample after a pause
// begins at the last full minute, and the first minute after the last page has closed ends the last short one.

import EventLoop
import Forwarder

/// Fills the rings, and reports each short sample.
final class Sampler {
  /// The time between two rows of the long ring, and between two of the short one.
  static let (minute, short) = (Duration.seconds(60), Duration.seconds(2))
  /// Rows for a day, and for ten minutes.
  private static let (minuteRows, shortRows) = (1440, 300)
  /// A difference of clocks up to this comes from reading them one after the other.
  private static let clockTolerance: Int64 = 1_000_000_000

  /// Called with each sample of two seconds.
  var report: (Sample, ForwarderStatistics) -> Void = { _, _ in }
  /// Called once a minute.
  var minuteHasPassed: () -> Void = {}
  /// Called when the wall clock was set: the times of all rows are others.
  var clockHasJumped: () -> Void = {}
  private(set) var minutes = SampleRing(rows: Sampler.minuteRows)
  private(set) var shorts = SampleRing(rows: Sampler.shortRows)
  /// Nanoseconds from the boot clock to the wall clock.
  private(set) var offset: Int64
  private let loop: any Loop
  private let read: () -> ForwarderStatistics
  private let wallClock: () -> Int64
  private var lastMinute: ForwarderStatistics
  private var lastShort: ForwarderStatistics
  private let (minuteTimer, shortTimer) = (OwnedTimer(), OwnedTimer())

  /// - Parameter wallClock: returns nanoseconds since 1970.
  init(on loop: any Loop, _ read: @escaping () -> ForwarderStatistics, wallClock: @escaping () -> Int64) {
    self.loop = loop
    self.read = read
    self.wallClock = wallClock
    lastMinute = read()
    lastShort = lastMinute
    offset = wallClock() - loop.now.nanoseconds
    setMinute()
  }

  /// Whether samples of two seconds are taken.
  var isWatched: Bool { shortTimer.isSet }

  /// Takes a short sample at once, and then every two seconds. Does nothing if that is so already.
  func watch() {
    guard !isWatched else { return }
    if lastShort.time < lastMinute.time { lastShort = lastMinute }
    takeShort()
  }

  /// Takes no more short samples.
  func unwatch() { shortTimer.cancel() }

  private func setMinute() { minuteTimer.set(after: Sampler.minute, on: loop, for: self) { $0.takeMinute() } }

  private func takeMinute() {
    setMinute()
    followClock()
    let now = read()
    minutes.append(sample(now, after: lastMinute))
    if !isWatched, lastShort.time > lastMinute.time { shorts.append(sample(now, after: lastShort)) }
    lastMinute = now
    if !isWatched { lastShort = now }
    minuteHasPassed()
  }

  private func takeShort() {
    shortTimer.set(after: Sampler.short, on: loop, for: self) { $0.takeShort() }
    followClock()
    let now = read()
    guard now.time > lastShort.time else { return }
    let sample = sample(now, after: lastShort)
    shorts.append(sample)
    lastShort = now
    report(sample, now)
  }

  /// The difference to an earlier reading; a gap if the loop was busy or the machine slept for so long that it is no rate.
  private func sample(_ later: ForwarderStatistics, after earlier: ForwarderStatistics) -> Sample {
    later.time - earlier.time > Sampler.minute * 3 ? Sample(gapUntil: later.time) : Sample(later, after: earlier)
  }

  private func followClock() {
    let present = wallClock() - loop.preciseNow.nanoseconds
    guard abs(present - offset) > Sampler.clockTolerance else { return }
    offset = present
    minutes.append(Sample(gapUntil: loop.now))
    shorts.append(Sample(gapUntil: loop.now))
    clockHasJumped()
  }
}
