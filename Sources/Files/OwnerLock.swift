// OwnerLock.swift -- lets only one of several programs with the same path write there: the one that holds the lock of a
// file beside it.
//
// A program does not wait for the lock: it tries again when it has something to write.

import Glibc
import Synchronization

/// The name of this machine; empty if it has none.
public var hostName: String {
  var name = [CChar](repeating: 0, count: 256)
  guard gethostname(&name, name.count - 1) == 0 else { return "" }
  return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// The lock of a path. The kernel releases it when the program exits. Any thread.
public final class OwnerLock: Sendable {
  /// The path that the lock protects.
  public let path: String
  private let name: String
  private let file = Mutex<Int32>(-1)

  /// The number of attempts to open and lock the file while other programs remove theirs.
  private static let attempts = 10
  /// The longest description of the owner in the file, in octets.
  private static let longestOwner = 512

  /// A lock that is not yet taken.
  ///
  /// - Parameters:
  ///   - path: the path that it protects, for messages.
  ///   - name: the path of the lock's file.
  public init(of path: String, file name: String) {
    self.path = path
    self.name = name
  }

  deinit { release() }

  /// Takes the lock unless this program holds it. May wait for a disk, but not for another program.
  ///
  /// If no file can be created beside the path, there is no lock: writing will fail and report the reason.
  /// - Throws: if another program holds it, or its file belongs to another user.
  public func take() throws(FileProblem) {
    try file.withLock { (file) throws(FileProblem) in
      if file >= 0, OpenFile.isNamed(name, file) { return }
      OwnerLock.close(&file)
      for _ in 0..<OwnerLock.attempts {
        // O_NONBLOCK: opening a FIFO would otherwise wait for its other end.
        let opened = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard opened >= 0 else {
          let problem = FileProblem(ofLastCall: name)
          var status = stat()
          guard lstat(name, &status) == 0 else { return }
          throw problem
        }
        file = opened
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else { throw inUse(&file) }
        if OpenFile.isNamed(name, opened) { return try sign(&file) }
        OwnerLock.close(&file)
      }
      throw FileProblem(path, "in use by another httpdnsd")
    }
  }

  /// Releases the lock and removes its file: the next program may run as another user.
  public func release() {
    file.withLock { file in
      guard file >= 0 else { return }
      if OpenFile.isNamed(name, file) { unlink(name) }
      OwnerLock.close(&file)
    }
  }

  /// Writes the owner into the file, for messages of other programs.
  private func sign(_ file: inout Int32) throws(FileProblem) {
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      OwnerLock.close(&file)
      throw FileProblem(name, "it is not a regular file")
    }
    // A process number is only meaningful on one machine or in one container.
    var text = "process \(getpid())\(hostName.isEmpty ? "" : " on \(hostName)")\n"
    // The lock holds even if the disk is full.
    _ = ftruncate(file, 0)
    _ = text.withUTF8 { pwrite(file, $0.baseAddress, $0.count, 0) }
  }

  private func inUse(_ file: inout Int32) -> FileProblem {
    var octets = [UInt8](repeating: 0, count: OwnerLock.longestOwner)
    let count = max(pread(file, &octets, octets.count, 0), 0)
    let line = octets[..<count].prefix { $0 != 0x0A }
    let isText = line.allSatisfy { 0x20..<0x7F ~= $0 } && !line.isEmpty
    OwnerLock.close(&file)
    return FileProblem(path, "in use by another httpdnsd\(isText ? " (\(String(decoding: line, as: UTF8.self)))" : "")")
  }

  private static func close(_ file: inout Int32) {
    guard file >= 0 else { return }
    Glibc.close(file)
    file = -1
  }
}
