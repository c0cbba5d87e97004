// StateFile.swift -- reads and atomically replaces a small file in the state directory.

import Files
import Glibc
import Synchronization

/// A file with mode 0600 that is written atomically, on a thread of its own. Any thread may call it.
public final class StateFile: Sendable {
  private struct Work: Sendable {
    var next: [UInt8]?
    var isWriting = false
    /// Whether the last content was not written because another process holds the folder.
    var isLeftOut = false
  }

  /// Whether the last content was not written because another process holds the folder.
  public var isLeftOut: Bool { work.withLock(\.isLeftOut) }

  private let path: String
  private let folder: StateFolder?
  private let work = Mutex(Work())
  private let onFailure: @Sendable (String) -> Void

  /// How many milliseconds shutdown waits for a slow disk.
  private static let mostWaits = 1000

  /// The file need not exist.
  ///
  /// - Parameter onFailure: receives one line that says why the file could not be written.
  public convenience init(path: String, onFailure: @escaping @Sendable (String) -> Void) {
    self.init(path: path, in: nil, onFailure: onFailure)
  }

  /// - Parameter folder: decides whether the file may be written; with nil it always may.
  init(path: String, in folder: StateFolder?, onFailure: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.folder = folder
    self.onFailure = onFailure
  }

  /// Returns the content; nil if the file does not exist, cannot be read or is longer than `limit` octets.
  public func read(limit: Int) -> [UInt8]? { try? WholeFile.read(path, limit: limit) }

  /// Replaces the content on another thread, since writing can block. Contents that arrive during a write supersede
  /// each other: only the last is written.
  public func save(_ octets: [UInt8]) {
    let mustStart = work.withLock { work in
      work.next = octets
      defer { work.isWriting = true }
      return !work.isWriting
    }
    guard mustStart else { return }
    BlockingTask.start("state file") { self.writeAll() }
  }

  /// Replaces the content before it returns, after any write in progress: for shutdown. Blocks.
  public func saveNow(_ octets: [UInt8]) {
    work.withLock { $0.next = nil }
    var waits = 0
    while work.withLock({ $0.isWriting }), waits < StateFile.mostWaits {
      usleep(1000)
      waits += 1
    }
    if let problem = write(octets) { onFailure(problem) }
  }

  private func writeAll() {
    while true {
      let octets = work.withLock { work -> [UInt8]? in
        defer { work.next = nil }
        work.isWriting = work.next != nil
        return work.next
      }
      guard let octets else { return }
      if let problem = write(octets) { onFailure(problem) }
    }
  }

  /// - Returns: why the file could not be written; nil on success, or if another process holds the folder.
  private func write(_ octets: [UInt8]) -> String? {
    let isOurs = folder?.take() ?? true
    work.withLock { $0.isLeftOut = !isOurs }
    guard isOurs else { return nil }
    do throws(FileProblem) {
      let replacement = try FileReplacement(of: path)
      try replacement.append(octets)
      try replacement.commit()
      return nil
    } catch { return error.description }
  }
}
