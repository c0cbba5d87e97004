// SetupLock.swift -- lets one process at a time change name resolution; the kernel releases the lock when it exits.

import Files
import Glibc

/// A lock file in setup's state folder, which it creates if needed. Only root may open the file, since any process that
/// can open a file can lock it. The file stays until nothing is applied.
final class SetupLock {
  /// What a lock protects; code that needs both locks takes them in this order.
  enum Matter: String, CaseIterable {
    /// Which server the machine asks: held by apply, undo and the service's hooks while their commands run.
    case names = "lock"
    /// The files that undo removes and `renew` writes. Separate, because resolvconf calls `renew` while a hook holds
    /// `names`.
    case files = "files.lock"

    var path: String { "\(SetupPaths.state)/\(rawValue)" }
  }

  /// How long to wait for others: the service's hooks hold the lock for as long as systemd-resolved or resolvconf
  /// takes.
  struct Patience {
    var attempts = 500
    /// Sleeps between two attempts.
    var rest: () -> Void = { usleep(20_000) }
  }

  private let descriptor: Int32

  /// Waits for the lock and takes it.
  ///
  /// - Throws: if another process holds it for too long, or it cannot be created.
  init(_ root: Root, _ matter: Matter, _ patience: Patience) throws(SetupError) {
    for attempt in 0... {
      if let file = try SetupLock.open(root, matter) {
        // The previous holder may have removed the file, and another process may have created a new one.
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
    // A child that another thread is starting may hold the descriptor a moment longer.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Removes the lock files that the caller holds or that no process can hold, and the state folder if it is then
  /// empty.
  static func removeFolder(_ root: Root, having matters: [Matter]) {
    for matter in matters { unlink(root.real(matter.path)) }
    rmdir(root.real(SetupPaths.state))
  }

  /// Opens the lock file; nil if another process has just removed its folder.
  private static func open(_ root: Root, _ matter: Matter) throws(SetupError) -> Int32? {
    var parents = [root.real(SetupPaths.state)]
    while let parent = parents.last.map(Root.parent), access(parent, F_OK) != 0, !parent.isEmpty {
      parents.append(parent)
    }
    for name in parents.reversed() {
      guard mkdir(name, 0o755) == 0 || errno == EEXIST else { throw .last("mkdir", name) }
      // Readable by all, whatever the umask: the daemon, which runs as another user, watches the state folder. An
      // earlier version may have left that closed.
      chmod(name, 0o755)
    }
    let path = root.real(matter.path)
    var descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    // A read-only file system can be locked too: the service's hooks only write below /run.
    if descriptor < 0, errno == EROFS { descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    if descriptor < 0, errno == ENOENT { return nil }
    guard descriptor >= 0 else { throw .last("open", path) }
    return descriptor
  }
}
