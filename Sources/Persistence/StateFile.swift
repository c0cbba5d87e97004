// StateFile.swift -- a small file in the state directory: read at the start, replaced as a whole by a thread of its own.

import Files
import Glibc
import Synchronization

/// A file that is written atomically, with mode 0600. Any thread.
public final class StateFile: Sendable {
  private struct Work: Sendable {
    var next: [UInt8]?
    var isWriting = false
    /// Whether the last content was not written: the folder was another process's.
    var isLeftOut = false
  }

  /// Whether the last content was not written, because the folder was another process's.
  public var isLeftOut: Bool { work.withLock(\.isLeftOut) }

  private let path: String
  private let folder: StateFolder?
  private let work = Mutex(Work())
  private let onFailure: @Sendable (String) -> Void

  /// Milliseconds that the end of the program waits for a disk.
  private static let mostWaits = 1000

  /// The file at a path, which need not exist.
  ///
  /// - Parameter onFailure: receives one line that says why the file could not be written.
  public convenience init(path: String, onFailure: @escaping @Sendable (String) -> Void) {
    self.init(path: path, in: nil, onFailure: onFailure)
  }

  /// - Parameter folder: says whether the file may be written; nil where it always may.
  init(path: String, in folder: StateFolder?, onFailure: @escaping @Sendable (String) -> Void) {
    self.path = path
    self.folder = folder
    self.onFailure = onFailure
  }

  /// The content; nil where there is no such file, or it cannot be read or is longer than `limit` octets.
  public func read(limit: Int) -> [UInt8]? { try? WholeFile.read(path, limit: limit) }

  /// Replaces the content, soon. Returns at once: writing can block. Of several contents that come while one is being
  /// written only the last counts.
  public func save(_ octets: [UInt8]) {
    let mustStart = work.withLock { work in
      work.next = octets
      defer { work.isWriting = true }
      return !work.isWriting
    }
    guard mustStart else { return }
    Errand.start("state file") { self.writeAll() }
  }

  /// Replaces the content before it returns: for the end of the program. A write in progress comes first.
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

  /// - Returns: why it could not be written.
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
