// SetupLock.swift -- only one program at a time changes the machine's names; the lock ends with it, however it ends.

import Files
import Glibc

/// A lock in setup's folder of state, which it makes where there is none. Its file is root's alone: whoever may open a file
/// may lock it. The file stays until nothing is applied any more.
final class SetupLock {
  /// What is locked; who needs both takes them in this order.
  enum Matter: String, CaseIterable {
    /// Where the machine's names go: apply, undo and the service's hooks, for as long as their commands take.
    case names = "lock"
    /// What undo takes away and `renew` writes. A matter of its own: resolvconf calls `renew` while a hook has the names.
    case files = "files.lock"

    var path: String { "\(Place.state)/\(rawValue)" }
  }

  /// How long to wait for others: hooks of the service have it for as long as systemd-resolved or resolvconf takes.
  struct Patience {
    var attempts = 500
    /// Between two attempts.
    var rest: () -> Void = { usleep(20_000) }
  }

  private let descriptor: Int32

  /// Waits until nobody else has it.
  ///
  /// - Throws: where somebody has it for too long, or it cannot be made.
  init(_ root: Root, _ matter: Matter, _ patience: Patience) throws(SetupError) {
    for attempt in 0... {
      if let file = try SetupLock.open(root, matter) {
        // Whoever had the lock may have removed the file, so that somebody else has a new one now.
        if flock(file, LOCK_EX | LOCK_NB) == 0, OpenFile.isNamed(root.real(matter.path), file) {
          descriptor = file
          return
        }
        close(file)
      }
      guard attempt < patience.attempts else { break }
      patience.rest()
    }
    throw .refused("another `httpdnsd setup` is running")
  }

  deinit {
    // A child that another thread is just starting may hold the descriptor a moment longer.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Removes the folder of state unless something is left in it but locks that the caller has, or nobody can have.
  static func removeFolder(_ root: Root, having matters: [Matter]) {
    for matter in matters { unlink(root.real(matter.path)) }
    rmdir(root.real(Place.state))
  }

  /// The lock's file; nil where somebody has just removed its folder.
  private static func open(_ root: Root, _ matter: Matter) throws(SetupError) -> Int32? {
    var parents = [root.real(Place.state)]
    while let parent = parents.last.map(Root.parent), access(parent, F_OK) != 0, !parent.isEmpty {
      parents.append(parent)
    }
    for name in parents.reversed() {
      // For everybody to read: the daemon, which is another user, watches the folder.
      guard mkdir(name, 0o755) == 0 || errno == EEXIST else {
        throw .last("mkdir", name)
      }
    }
    let path = root.real(matter.path)
    var descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    // A lock can be had on a file system that has become read-only, too: what is written then stands below /run.
    if descriptor < 0, errno == EROFS { descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    if descriptor < 0, errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw .last("open", path) }
    return descriptor
  }
}
