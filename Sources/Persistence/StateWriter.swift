// StateWriter.swift -- saves a small piece of state with a delay after a change, and on exit.
//
// Resolver's loop only.

import EventLoop

/// Writes a state file at most once per delay.
public final class StateWriter {
  private let file: StateFile
  private let loop: any Loop
  private let delay: Duration
  private let content: () -> [UInt8]
  private let timer = OwnedTimer()

  /// - Parameters:
  ///   - delay: the time from the first unsaved change to the save, which is all that `kill -9` can lose.
  ///   - content: returns the octets to write.
  public init(_ file: StateFile, on loop: any Loop, after delay: Duration, content: @escaping () -> [UInt8]) {
    self.file = file
    self.loop = loop
    self.delay = delay
    self.content = content
  }

  /// Schedules a save unless one is scheduled already.
  public func changed() {
    loop.assertCurrent()
    guard !timer.isSet else { return }
    timer.set(after: delay, on: loop, for: self) { $0.file.save($0.content()) }
  }

  /// Writes unsaved changes before it returns.
  public func close() {
    loop.assertCurrent()
    guard timer.isSet || file.isLeftOut else { return }
    timer.cancel()
    file.saveNow(content())
  }
}
