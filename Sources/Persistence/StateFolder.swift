// StateFolder.swift -- the state directory: what one program keeps there, and another one beside it only reads.

import Files
import Glibc
import Synchronization

/// The folder of the state files. Any thread.
public final class StateFolder: Sendable {
  /// Whether this program may write there.
  public enum Note: Hashable, Sendable, CustomStringConvertible {
    /// It may not, for that reason; it is tried again whenever there is something to write.
    case notOurs(String)
    /// It may at last.
    case ours(path: String)

    /// One line.
    public var description: String {
      switch self {
      case .notOurs(let reason): "state_directory: nothing is kept for the next start: \(reason)"
      case .ours(let path): "state_directory: \(path) is free, and written to from now on"
      }
    }
  }

  private struct State: Sendable {
    var isUsed = false
    var problem: FileProblem?
  }

  /// Its path.
  public let path: String
  private let lock: OwnerLock
  private let state = Mutex(State())
  private let note: @Sendable (Note) -> Void

  /// A folder that is only read until `use`.
  ///
  /// - Parameter note: receives each change.
  public init(path: String, note: @escaping @Sendable (Note) -> Void) {
    self.path = path
    self.note = note
    lock = OwnerLock(of: path, file: "\(path)/lock")
  }

  /// From now on its files are written, as far as no other program does that.
  public func use() {
    state.withLock { $0.isUsed = true }
    _ = take()
  }

  /// Nothing is written any more: another program may.
  public func leave() {
    state.withLock { $0.isUsed = false }
    lock.release()
  }

  /// A file in it.
  ///
  /// - Parameter onFailure: receives one line with the reason of a failure; not where another program writes there.
  public func file(_ name: String, onFailure: @escaping @Sendable (String) -> Void) -> StateFile {
    StateFile(path: "\(path)/\(name)", in: self, onFailure: onFailure)
  }

  /// Whether a file may be written now.
  func take() -> Bool {
    let (mayWrite, news) = state.withLock { state -> (Bool, Note?) in
      guard state.isUsed else { return (false, nil) }
      let old = state.problem
      do throws(FileProblem) {
        try lock.take()
        state.problem = nil
      } catch { state.problem = error }
      guard let problem = state.problem else { return (true, old == nil ? nil : .ours(path: path)) }
      return (false, problem == old ? nil : .notOurs(problem.description))
    }
    if let news { note(news) }
    return mayWrite
  }
}
