// SetupLock.swift -- only one program at a time changes the machine's names; the lock ends with it, however it ends.

import Glibc

/// The lock on setup's folder of state, which it makes where there is none. Who has it removes the folder where nothing
/// is left in it.
final class SetupLock {
  /// How long to wait for others: hooks of the service have it for as long as systemd-resolved or resolvconf takes.
  struct Patience {
    var attempts = 500
    /// Between two attempts.
    var rest: () -> Void = { usleep(20_000) }
  }

  private let descriptor: Int32

  /// Waits until nobody else has it.
  ///
  /// - Throws: where somebody has it for too long, or the folder cannot be made.
  init(_ root: Root, _ patience: Patience) throws(SetupError) {
    for attempt in 0... {
      let folder = try SetupLock.open(root)
      // Whoever had the lock may have removed the folder, so that somebody else has a new one now.
      if flock(folder, LOCK_EX | LOCK_NB) == 0, SetupLock.isPresent(folder, root) {
        descriptor = folder
        return
      }
      close(folder)
      guard attempt < patience.attempts else { break }
      patience.rest()
    }
    throw .refused("another `httpdnsd setup` is under way")
  }

  deinit {
    // A child that another thread is just starting may hold the descriptor a moment longer.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  private static func open(_ root: Root) throws(SetupError) -> Int32 {
    let folder = root.real(Place.state)
    var parents = [folder]
    while let parent = parents.last.map(Root.parent), access(parent, F_OK) != 0, !parent.isEmpty {
      parents.append(parent)
    }
    for name in parents.reversed() {
      // For everybody to read: the daemon, which is another user, watches the folder.
      guard mkdir(name, 0o755) == 0 || errno == EEXIST else {
        throw .last("mkdir", name)
      }
    }
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw .last("open", folder) }
    return descriptor
  }

  private static func isPresent(_ descriptor: Int32, _ root: Root) -> Bool {
    var (locked, present) = (stat(), stat())
    guard fstat(descriptor, &locked) == 0, lstat(root.real(Place.state), &present) == 0 else { return false }
    return locked.st_ino == present.st_ino && locked.st_dev == present.st_dev
  }
}
