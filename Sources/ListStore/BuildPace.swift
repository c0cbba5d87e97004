// BuildPace.swift -- how often a table of all lists may be built.
//
// A table is built from all texts again. Changes are collected for a second, and the pause between two builds is 20 times what
// the last one took: lists take a twentieth of one processor at most, however often they change.

import EventLoop

/// Asks for a build after a change. Owned by the store; resolver's loop only.
final class BuildPace {
  /// Called when a table is to be built.
  var build: () -> Void = {}

  private let loop: any Loop
  private var isBuilding = false
  /// The first change that no build has.
  private var changedAt: BootInstant?
  private var earliest = BootInstant(nanoseconds: .min)
  private let timer = OwnedTimer()

  private static let collecting = Duration.seconds(1)
  private static let pauseFactor = 20

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
    let time = isUrgent ? loop.now : max(since + BuildPace.collecting, earliest)
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
  }
}
