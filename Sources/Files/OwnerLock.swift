// OwnerLock.swift -- of all programs that are given the same path one writes there: it has the lock of a file beside it.
//
// Nobody waits for it: whoever does not get it tries again when there is something to write.

import Glibc
import Synchronization

/// The lock of a path, which ends with the program at the latest. Any thread.
public final class OwnerLock: Sendable {
  /// What the lock is about.
  public let path: String
  private let name: String
  private let file = Mutex<Int32>(-1)

  /// How often the file may go while it is being opened, before that counts as somebody who has it.
  private static let attempts = 10
  /// Octets of what the file says of its owner.
  private static let longestOwner = 512

  /// A lock that nobody has taken yet.
  ///
  /// - Parameters:
  ///   - path: what it is about, for people.
  ///   - name: the path of the lock's file.
  public init(of path: String, file name: String) {
    self.path = path
    self.name = name
  }

  deinit { release() }

  /// Takes the lock, where this program has not got it. May wait for a disk, but for no other program.
  ///
  /// Where there can be no file beside the path, there is no lock: whoever writes will be told why that cannot be done.
  /// - Throws: where another program has it, or its file is another user's.
  public func take() throws(FileProblem) {
    try file.withLock { (file) throws(FileProblem) in
      if file >= 0, OpenFile.isNamed(name, file) { return }
      OwnerLock.close(&file)
      for _ in 0..<OwnerLock.attempts {
        // Without waiting: for a FIFO nobody may ever come.
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

  /// Gives the lock back, and takes its file away: the next program may be another user's.
  public func release() {
    file.withLock { file in
      guard file >= 0 else { return }
      if OpenFile.isNamed(name, file) { unlink(name) }
      OwnerLock.close(&file)
    }
  }

  /// Writes into the file who has it, for people.
  private func sign(_ file: inout Int32) throws(FileProblem) {
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      OwnerLock.close(&file)
      throw FileProblem(name, "it is not a regular file")
    }
    // Numbers of processes mean something on one machine, or in one container, only.
    var host = [CChar](repeating: 0, count: 256)
    gethostname(&host, host.count - 1)
    let machine = String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    var text = "process \(getpid())\(machine.isEmpty ? "" : " on \(machine)")\n"
    // On a full disk the lock counts all the same.
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
