// FileWatch.swift -- tells when something happens to a file.

import CEvent
import Glibc

/// Watches a file through its folder: editors and container platforms replace files instead of writing into them. Ends with
/// the object. Loop thread only.
public final class FileWatch {
  private let descriptor: Int32
  private let loop: EventLoop
  private let changed: () -> Void
  private var event: LoopEvent?
  private var timer: LoopTimer?

  /// A file is written in several steps: what happens within this time is one change.
  private static let quiet = Duration.milliseconds(100)

  /// Calls `changed` a moment after something has happened in the file's folder, perhaps to another file there.
  ///
  /// - Returns: nil where the folder does not exist or cannot be watched.
  public init?(_ path: String, on loop: EventLoop, _ changed: @escaping () -> Void) {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    self.loop = loop
    self.changed = changed
    let what = UInt32(IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB)
    guard descriptor >= 0, inotify_add_watch(descriptor, folder, what) >= 0 else { return nil }
    event = LoopEvent(on: loop, descriptor: descriptor, .read) { [unowned self] _ in readable() }
  }

  deinit {
    event = nil
    timer?.cancel()
    if descriptor >= 0 { close(descriptor) }
  }

  private func readable() {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while read(descriptor, &buffer, buffer.count) > 0 {}
    guard timer == nil else { return }
    timer = loop.schedule(after: FileWatch.quiet) { [weak self] in
      self?.timer = nil
      self?.changed()
    }
  }
}
