// StateWriter.swift -- saves a small piece of state with a delay after a change, and on exit.
//
// Resolver's loop only.

import EventLoop
import Persistence

/// Writes a state file at most once per delay.
package final class StateWriter {
  private let file: StateFile
  private let loop: any Loop
  private let delay: Duration
  private let content: () -> [UInt8]
  private var timer: LoopTimer?

  /// - Parameters:
  ///   - delay: the time from the first unsaved change to the save, which is all that `kill -9` can lose.
  ///   - content: returns the octets to write.
  package init(_ file: StateFile, on loop: any Loop, after delay: Duration, content: @escaping () -> [UInt8]) {
    self.file = file
    self.loop = loop
    self.delay = delay
    self.content = content
  }

  /// Schedules a save unless one is scheduled already.
  package func changed() {
    loop.assertCurrent()
    guard timer == nil else { return }
    timer = loop.schedule(after: delay) { [weak self] in
      guard let self else { return }
      timer = nil
      file.save(content())
    }
  }

  /// Writes unsaved changes before it returns.
  package func close() {
    loop.assertCurrent()
    guard timer != nil || file.isLeftOut else { return }
    timer?.cancel()
    timer = nil
    file.saveNow(content())
  }
}
