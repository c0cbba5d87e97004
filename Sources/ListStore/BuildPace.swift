// BuildPace.swift -- how often a table of all lists may be built.
//
// A table is built from all texts again. Changes are collected for a second, and the pause between two builds is 20 times what
// the last one took: lists take a twentieth of one processor at most, however often they change. A caller that waits has its
// build at once, but not within 10 s of one that failed.

import EventLoop

/// Asks for a build after a change. Owned by the store; resolver's loop only.
final class BuildPace {
  /// Called when a table is to be built.
  var build: () -> Void = {}

  private let loop: any Loop
  private var isBuilding = false
  /// When the first change came that no table includes.
  private var changedAt: BootInstant?
  private var earliest = BootInstant(nanoseconds: .min)
  /// The end of the pause after a build that failed.
  private var retryAt = BootInstant(nanoseconds: .min)
  private let timer = OwnedTimer()

  private static let collecting = Duration.seconds(1)
  private static let pauseFactor = 20
  private static let pauseAfterFailure = Duration.seconds(10)

  init(on loop: any Loop) { self.loop = loop }

  func stop() {
    timer.cancel()
    // No build is asked for any more.
    isBuilding = true
  }

  /// A table lacks something.
  ///
  /// - Parameter isUrgent: whether a caller waits for it.
  func isOutdated(isUrgent: Bool) {
    let since = changedAt ?? loop.now
    changedAt = since
    guard !isBuilding else { return }
    let time = max(isUrgent ? loop.now : max(since + BuildPace.collecting, earliest), retryAt)
    if let deadline = timer.deadline, deadline <= time { return }
    timer.set(at: time, on: loop, for: self) { $0.begin() }
  }

  private func begin() {
    (isBuilding, changedAt) = (true, nil)
    build()
  }

  /// A table was built, whether asked for or not.
  func isBuilt(in time: Duration) {
    timer.cancel()
    (isBuilding, changedAt) = (false, nil)
    earliest = loop.now + time * BuildPace.pauseFactor
    retryAt = BootInstant(nanoseconds: .min)
  }

  /// No table could be built.
  ///
  /// - Parameter time: how long the attempt took.
  func hasFailed(in time: Duration) {
    timer.cancel()
    (isBuilding, changedAt) = (false, nil)
    retryAt = loop.now + max(BuildPace.pauseAfterFailure, time * BuildPace.pauseFactor)
  }
}
