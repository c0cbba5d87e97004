// FileReplacementTests.swift -- at every moment the file has its old content or its new one.

import Files
import Glibc
import MessageCache
import TestSupport
import Testing

@testable import Persistence

@Suite struct `A file that is replaced` {
  private let folder = TemporaryFolder()
  private var path: String { "\(folder.path)/cache" }

  @Test func `a file has its old content until the new one is complete`() throws {
    folder.write([1])
    let replacement = try FileReplacement(of: path)
    #expect(folder.read() == [1])
    try replacement.append([2])
    try replacement.append([3, 4])
    #expect(folder.read() == [1])
    try replacement.commit()
    #expect(folder.read() == [2, 3, 4])
    #expect(folder.names == ["cache"])
    #expect(folder.mode() == 0o600)
  }

  @Test func `a file retains its old content if the replacement is given up`() throws {
    folder.write([1])
    do { try FileReplacement(of: path).append([2]) }
    #expect(folder.read() == [1])
    #expect(folder.names == ["cache"])
  }

  /// What a program that is killed leaves behind: nothing yet, an empty file, a part, all of it.
  @Test(arguments: [nil, 0, 100, 1 << 20])
  func `a file survives a killed writer and can be replaced the next time`(written: Int?) throws {
    let cache = MessageCache.empty()
    cache.fill()
    _ = try folder.file.save(cache, .usual, at: .at(1))
    if let written {
      folder.write(Array(repeating: 7, count: written), to: "cache.new")
      chmod("\(path).new", 0o644)
    }
    #expect(folder.file.load(into: .empty(), .usual, at: .at(1)) == kept(5))
    cache.insert("one.more.example.com")
    #expect(try folder.file.save(cache, .usual, at: .at(1)).entries == 6)
    #expect(folder.file.load(into: .empty(), .usual, at: .at(1)) == kept(6))
    #expect(folder.names == ["cache"])
    #expect(folder.mode() == 0o600)
  }

  @Test func `a file is replaced by one writer at a time`() throws {
    let first = try FileReplacement(of: path)
    try first.append([1, 2, 3])
    let problem = #expect(throws: FileProblem.self) { try FileReplacement(of: path) }
    #expect(problem?.description == "\(path): another program is writing it")
    try first.commit()
    #expect(folder.read() == [1, 2, 3])
    let second = try FileReplacement(of: path)
    try second.append([4])
    try second.commit()
    #expect(folder.read() == [4])
  }

  @Test func `a file is whole whichever of two writers is last`() {
    let path = path
    let savers = (0..<2).map { number in
      BlockingTask.start("saver") {
        for round in 0..<50 {
          guard let replacement = try? FileReplacement(of: path) else { continue }
          for _ in 0..<10 { try? replacement.append([UInt8](repeating: UInt8(number * 100 + round), count: 1000)) }
          try? replacement.commit()
        }
      }
    }
    var contents = 0
    for _ in 0..<200 {
      guard let octets = folder.read() else { continue }
      contents += 1
      #expect(octets.count == 10_000 && Set(octets).count == 1)
    }
    for saver in savers { #expect(saver.wait(atMost: .seconds(60))) }
    #expect(folder.read()?.count == 10_000)
    #expect(folder.names == ["cache"])
  }

  @Test func `a file never replaces a folder, FIFO or device`() throws {
    for make in [{ mkdir($0, 0o700) }, { mkfifo($0, 0o600) }] {
      #expect(make(path) == 0)
      let replacement = try FileReplacement(of: path)
      let problem = #expect(throws: FileProblem.self) { try replacement.commit() }
      #expect(problem?.description == "\(path): it is not a regular file")
      if unlink(path) != 0 { rmdir(path) }
    }
  }

  @Test func `a file is not written through a link at the temporary name`() throws {
    folder.write([1])
    folder.write([5], to: "other")
    for make in [
      { symlink("other", $0) }, { mkdir($0, 0o700) }, { mkfifo($0, 0o600) },
    ] as [(String) -> Int32] {
      let name = "\(path).new"
      #expect(make(name) == 0)
      #expect(throws: FileProblem.self) { try FileReplacement(of: path) }
      var status = stat()
      #expect(lstat(name, &status) == 0, "it was removed")
      if unlink(name) != 0 { rmdir(name) }
    }
    #expect(folder.read() == [1])
    #expect(folder.read("other") == [5])
  }

  @Test(.enabled(if: SmallDisk.isAvailable, "this user may not mount a file system"))
  func `a file retains its old content if the disk is full`() throws {
    let disk = try #require(SmallDisk(on: folder))
    defer { withExtendedLifetime(disk) {} }
    let small = MessageCache.empty()
    small.fill()
    _ = try folder.file.save(small, .usual, at: .at(1))
    let large = MessageCache.empty()
    for number in 0..<5_000 { large.insert("n\(number).example.com") }
    let problem = #expect(throws: FileProblem.self) { try folder.file.save(large, .usual, at: .at(1)) }
    #expect(problem?.description == "\(path): No space left on device (user \(geteuid()))")
    #expect(folder.names == ["cache"])
    #expect(folder.file.load(into: .empty(), .usual, at: .at(1)) == kept(5))
  }
}
