// LogPipe.swift -- a pipe that receives a test's log.

import Glibc
import Testing

/// A pipe that is read only on request.
final class LogPipe {
  let readEnd: Int32
  let writeEnd: Int32

  init() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe2(&ends, O_CLOEXEC) == 0)
    (readEnd, writeEnd) = (ends[0], ends[1])
    _ = fcntl(readEnd, F_SETFL, O_NONBLOCK)
  }

  deinit {
    close(readEnd)
    close(writeEnd)
  }

  /// All pending data.
  func read() -> String {
    var all: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while case let count = Glibc.read(readEnd, &block, block.count), count > 0 { all += block[..<count] }
    return String(decoding: all, as: UTF8.self)
  }
}
