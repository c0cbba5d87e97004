// ShiftedClock.swift -- a wall clock of its own for a daemon.

import Foundation

/// The wall clock of a daemon; the simulator has the machine's.
final class ShiftedClock {
  private let path: String

  /// A clock that is `seconds` ahead of the machine's.
  init(in lab: Lab, by seconds: Int64 = 0) throws {
    path = try lab.folder.write("", to: "clock")
    try shift(by: seconds)
  }

  /// A clock that says 2000-01-01.
  static func of2000(in lab: Lab) throws -> ShiftedClock {
    try ShiftedClock(in: lab, by: 946_684_800 - Int64(Date().timeIntervalSince1970))
  }

  /// What a daemon has to be started with.
  var environment: [String: String] {
    get throws {
      ["LD_PRELOAD": "\(try Programs.lookupRefusal()):\(try Programs.clockShift())", "CLOCK_OFFSET_FILE": path]
    }
  }

  /// Sets the clock right, as a time server would.
  func setRight() throws { try shift(by: 0) }

  /// From now on it is `seconds` ahead.
  func shift(by seconds: Int64) throws {
    let file = open(path, O_WRONLY | O_CLOEXEC)
    defer { close(file) }
    let written = withUnsafeBytes(of: seconds) { pwrite(file, $0.baseAddress, $0.count, 0) }
    guard written == MemoryLayout<Int64>.size else { throw Failure("cannot write \(path)") }
  }
}
