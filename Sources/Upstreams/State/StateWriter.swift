// StateWriter.swift -- saves a small piece of state some time after it has changed, and at the end.
//
// Resolver's loop only.

import EventLoop
import Persistence

/// Writes a state file, not more often than once in a while.
package final class StateWriter {
  private let file: StateFile
  private let loop: any Loop
  private let delay: Duration
  private let content: () -> [UInt8]
  private var timer: LoopTimer?

  /// - Parameters:
  ///   - delay: from the first change that was not saved to the save: `kill -9` loses no more than that.
  ///   - content: asked for what is to be written.
  package init(_ file: StateFile, on loop: any Loop, after delay: Duration, content: @escaping () -> [UInt8]) {
    self.file = file
    self.loop = loop
    self.delay = delay
    self.content = content
  }

  /// Something has changed.
  package func changed() {
    guard timer == nil else { return }
    timer = loop.schedule(after: delay) { [weak self] in
      guard let self else { return }
      timer = nil
      file.save(content())
    }
  }

  /// Writes what has not been written, before it returns.
  package func close() {
    guard timer != nil || file.isLeftOut else { return }
    timer?.cancel()
    timer = nil
    file.saveNow(content())
  }
}
