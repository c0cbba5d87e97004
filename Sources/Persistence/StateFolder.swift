// StateFolder.swift -- the state directory: one process writes there, another one only reads.

import Files
import Glibc
import Synchronization

/// The directory of the state files. Any thread.
public final class StateFolder: Sendable {
  /// A change of whether this process may write there.
  public enum Note: Hashable, Sendable, CustomStringConvertible {
    /// It may not, for this reason; each write tries again.
    case notOurs(String)
    /// It may write again.
    case ours(path: String)

    /// One line for the log.
    public var description: String {
      switch self {
      case .notOurs(let reason): "state_directory: nothing is saved for the next start: \(reason)"
      case .ours(let path): "state_directory: \(path) is free, and written to from now on"
      }
    }
  }

  private struct State: Sendable {
    var isUsed = false
    var problem: FileProblem?
  }

  /// The path of the directory.
  public let path: String
  private let lock: OwnerLock
  private let state = Mutex(State())
  private let note: @Sendable (Note) -> Void

  /// Creates a handle that only reads until `use`.
  ///
  /// - Parameter note: receives each change; called on the thread that writes.
  public init(path: String, note: @escaping @Sendable (Note) -> Void) {
    self.path = path
    self.note = note
    lock = OwnerLock(of: path, file: "\(path)/lock")
  }

  /// Allows writes from now on, as long as no other process holds the lock.
  public func use() {
    state.withLock { $0.isUsed = true }
    _ = take()
  }

  /// Stops writing and releases the lock for other processes.
  public func leave() {
    state.withLock { $0.isUsed = false }
    lock.release()
  }

  /// Returns a handle for a file in the directory.
  ///
  /// - Parameter onFailure: receives one line per failed write; not called when another process holds the lock.
  public func file(_ name: String, onFailure: @escaping @Sendable (String) -> Void) -> StateFile {
    StateFile(path: "\(path)/\(name)", in: self, onFailure: onFailure)
  }

  /// Takes the lock if needed; returns whether a file may be written now.
  package func take() -> Bool {
    let (mayWrite, newNote) = state.withLock { state -> (Bool, Note?) in
      guard state.isUsed else { return (false, nil) }
      let old = state.problem
      do throws(FileProblem) {
        try lock.take()
        state.problem = nil
      } catch { state.problem = error }
      guard let problem = state.problem else { return (true, old == nil ? nil : .ours(path: path)) }
      return (false, problem == old ? nil : .notOurs(problem.description))
    }
    if let newNote { note(newNote) }
    return mayWrite
  }
}
