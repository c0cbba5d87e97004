// PathWatch.swift -- reports when the files that some paths lead to may have changed.

import CEvent
import Glibc

/// Watches paths with inotify(7), also through symbolic links and in folders that do not exist yet. It causes no wake-ups
/// while nothing changes. Ends on deinit. Loop thread only.
public final class PathWatch {
  private let paths: [String]
  private let loop: EventLoop
  private let quiet: Duration
  private let changed: () -> Void
  private let descriptor: Int32
  private var event: LoopEvent?
  private let timer = OwnedTimer()
  private var watched = PathDependencies(of: [])
  /// The relevant names of each watched folder; nil for a file, all of whose events are relevant.
  private var watches: [Int32: Set<String>?] = [:]

  /// The limit of retries if the paths change while they are being followed.
  private static let attempts = 4

  /// Calls `changed` after an event on a path; the content may be unchanged. It is not called for the initial state.
  ///
  /// - Parameters:
  ///   - paths: absolute paths.
  ///   - quiet: the delay after the first event. Events within it count as one change, because a file is written in several
  ///     steps, and often together with others.
  /// - Returns: nil if the kernel provides no watch or the process has used up its limit.
  public init?(
    _ paths: [String], on loop: EventLoop, quiet: Duration = .milliseconds(100), changed: @escaping () -> Void
  ) {
    self.paths = paths
    self.loop = loop
    self.quiet = quiet
    self.changed = changed
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard descriptor >= 0 else { return nil }
    event = LoopEvent(on: loop, descriptor: descriptor, .read, for: self) { $0.readable() }
    renew()
    guard !watches.isEmpty else { return nil }
  }

  deinit {
    event = nil
    if descriptor >= 0 { close(descriptor) }
  }

  /// Sets watches on what the paths currently depend on.
  private func renew() {
    for _ in 0..<PathWatch.attempts {
      let dependencies = PathDependencies(of: paths)
      // A folder that was removed and created again has lost its watch, so equal names are not sufficient.
      if dependencies == watched, !watches.isEmpty { return }
      watch(dependencies)
      watched = dependencies
    }
  }

  private func watch(_ dependencies: PathDependencies) {
    let entries = IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE
    var renewed: [Int32: Set<String>?] = [:]
    for (folder, names) in dependencies.names {
      let watch = inotify_add_watch(descriptor, folder, UInt32(entries | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR))
      if watch >= 0 { renewed[watch] = .some(names) }
    }
    for file in dependencies.files {
      let watch = inotify_add_watch(descriptor, file, UInt32(IN_CLOSE_WRITE))
      if watch >= 0 { renewed[watch] = .some(nil) }
    }
    for watch in watches.keys where renewed[watch] == nil { inotify_rm_watch(descriptor, watch) }
    watches = renewed
  }

  private func readable() {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    var isTouched = false
    // Bounded, so that a program that writes without end does not hold the loop. The next turn reads the rest.
    for _ in 0..<16 {
      let count = read(descriptor, &buffer, buffer.count)
      guard count > 0 else { break }
      var rest = buffer[..<count]
      while rest.count >= PathWatch.headerSize {
        let event = rest.withUnsafeBytes { $0.loadUnaligned(as: inotify_event.self) }
        let name = rest.dropFirst(PathWatch.headerSize).prefix(Int(event.len)).prefix { $0 != 0 }
        if matters(event, String(decoding: name, as: UTF8.self)) { isTouched = true }
        rest = rest.dropFirst(PathWatch.headerSize + Int(event.len))
      }
    }
    if isTouched { touched() }
  }

  private func touched() {
    guard !timer.isSet else { return }
    timer.set(after: quiet, on: loop) { [weak self] in
      guard let self else { return }
      // Before the callback reads the files, so that later changes are noticed.
      renew()
      changed()
    }
  }

  private func matters(_ event: inotify_event, _ name: String) -> Bool {
    if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
    // A watch that we removed is not in the list any more.
    guard let names = watches[event.wd] else { return false }
    if event.mask & UInt32(IN_IGNORED) != 0 { watches[event.wd] = nil }
    // Removal or move of the watched folder itself.
    if event.mask & UInt32(IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF) != 0 {
      watched = PathDependencies(of: [])
      return true
    }
    return names?.contains(name) ?? true
  }

  private static let headerSize = 16
}
