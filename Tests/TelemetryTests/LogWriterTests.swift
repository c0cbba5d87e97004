// LogWriterTests.swift -- a stalled reader blocks no thread and loses only what exceeds the buffer.

import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Telemetry

@Suite struct `A log writer` {
  private let pipe: LogPipe
  private let line = String(repeating: "x", count: 99) + "\n"

  init() throws { pipe = try LogPipe() }

  private func writer(_ descriptor: Int32) -> LogWriter { LogWriter(descriptor) { "lost \($0)\n" } }

  /// Writes until a line is dropped; returns the number of accepted lines.
  private func fill(_ writer: LogWriter, _ importance: LogWriter.Importance = .usual) -> Int {
    var taken = 0
    while writer.write(line, importance), taken < 100_000 { taken += 1 }
    return taken
  }

  @Test func `a write to a full pipe returns, and buffered lines follow in order`() {
    let writer = writer(pipe.writeEnd)
    for number in 0..<20_000 { #expect(writer.write("\(number)\n")) }
    var text = pipe.read()
    while !writer.retry() { text += pipe.read() }
    text += pipe.read()
    #expect(text == (0..<20_000).map { "\($0)\n" }.joined())
  }

  @Test func `the number of dropped lines is written once there is room`() {
    let writer = writer(pipe.writeEnd)
    let taken = fill(writer)
    #expect(taken * line.utf8.count > LogWriter.mostWaiting)
    for _ in 0..<6 { #expect(!writer.write(line)) }
    var text = pipe.read()
    while !writer.retry() { text += pipe.read() }
    text += pipe.read()
    let lines = text.split(separator: "\n")
    // The line that `fill` could not write counts too.
    #expect(lines.last == "lost 7")
    #expect(lines.count == taken + 1)
    #expect(lines.dropLast().allSatisfy { $0.utf8.count == 99 })
    writer.write("next\n")
    #expect(pipe.read() == "next\n")
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "this user may not mount a file system"))
  func `what a full disk does not take is written once there is room, and the rest is counted`() throws {
    let folder = TemporaryFolder()
    let disk = try #require(SmallDisk(on: folder))
    defer { withExtendedLifetime(disk) {} }
    let filler = try #require(fopen("\(folder.path)/filler", "w"))
    while fputs(line, filler) >= 0, fflush(filler) == 0 {}
    fclose(filler)
    let log = open("\(folder.path)/log", O_RDWR | O_CREAT, 0o600)
    defer { close(log) }
    let writer = writer(log)
    let taken = fill(writer)
    #expect(!writer.retry() && taken * line.utf8.count <= LogWriter.mostWaiting)
    unlink("\(folder.path)/filler")
    // The disk has room for a part of what waits.
    #expect(!writer.retry())
    var status = stat()
    #expect(fstat(log, &status) == 0 && status.st_size > 64 << 10)
    ftruncate(log, 0)
    lseek(log, 0, SEEK_SET)
    while !writer.retry() {
      ftruncate(log, 0)
      lseek(log, 0, SEEK_SET)
    }
    var text = [UInt8](repeating: 0, count: 256 << 10)
    text.removeLast(text.count - pread(log, &text, text.count, 0))
    #expect(String(decoding: text, as: UTF8.self).hasSuffix("\(line)lost 1\n"))
  }

  @Test func `minor lines use at most half of the buffer`() {
    let writer = writer(pipe.writeEnd)
    let minor = fill(writer, .minor)
    #expect(!writer.write(line, .minor))
    #expect(fill(writer) * line.utf8.count >= LogWriter.mostWaiting / 2 - line.utf8.count)
    #expect(minor > 0)
  }

  @Test func `a log writer reports each time that its reader falls behind`() {
    let writer = writer(pipe.writeEnd)
    let times = Mutex(0)
    writer.whenBehind { times.withLock { $0 += 1 } }
    writer.write(line)
    #expect(times.withLock { $0 } == 0)
    for expected in 1...3 {
      _ = fill(writer)
      #expect(times.withLock { $0 } == expected)
      while !writer.retry() { _ = pipe.read() }
    }
  }

  @Test func `a log writer does not change the flags of a shared descriptor`() {
    let writer = writer(pipe.writeEnd)
    _ = fill(writer)
    #expect(fcntl(pipe.writeEnd, F_GETFL) & O_NONBLOCK == 0)
  }

  @Test func `a log writer does not block on a socket or a terminal`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { ends.forEach { close($0) } }
    #expect(fill(writer(ends[0])) < 100_000)
    let terminal = posix_openpt(O_RDWR | O_NOCTTY)
    defer { close(terminal) }
    try #require(grantpt(terminal) == 0 && unlockpt(terminal) == 0)
    let name = try #require(ptsname(terminal))
    let user = open(name, O_RDWR | O_NOCTTY)
    defer { close(user) }
    #expect(fill(writer(user)) < 100_000)
  }

  @Test func `a log writer without a reader continues and buffers nothing`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { close(ends[0]) }
    let writer = writer(ends[0])
    close(ends[1])
    for _ in 0..<10_000 { #expect(writer.write(line)) }
    #expect(writer.retry())
  }

  @Test func `finish takes limited time without a reader, and writes everything with one`() {
    let writer = writer(pipe.writeEnd)
    let taken = fill(writer)
    let start = ContinuousClock.now
    writer.finish(within: 50)
    #expect(ContinuousClock.now - start < longestStep)
    var text = pipe.read()
    while !writer.retry() { text += pipe.read() }
    writer.finish(within: 50)
    text += pipe.read()
    #expect(text.split(separator: "\n").count { $0.utf8.count == 99 } == taken)
  }
}
