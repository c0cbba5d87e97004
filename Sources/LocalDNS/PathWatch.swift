// PathWatch.swift -- tells when what some paths lead to may have become something else.
//
// A path leads through folders that need not exist yet, and through symbolic links that are replaced. Each place on the
// way where another entry would lead elsewhere is watched, and the file itself, which may be mounted alone.

import EventLoop
import Glibc

/// The folders, and the names in them, on which it depends what some paths lead to.
struct PathDependencies: Equatable {
  /// Names that matter, by the folder that they are in. No folder is a symbolic link.
  private(set) var names: [String: Set<String>] = [:]
  /// The files that the paths lead to now.
  private(set) var files: Set<String> = []

  /// As many symbolic links as the kernel follows.
  private static let maximumLinks = 40

  /// Follows absolute paths as far as they lead.
  init(of paths: [String]) {
    for path in paths { follow(path) }
  }

  private mutating func follow(_ path: String) {
    var folder = "/"
    var rest = path.split(separator: "/").map(String.init)[...]
    var links = 0
    while let name = rest.popFirst() {
      if name == "." { continue }
      if name == ".." {
        folder = PathDependencies.parent(of: folder)
        continue
      }
      let entry = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
      var status = stat()
      let exists = lstat(entry, &status) == 0
      if exists, status.st_mode & S_IFMT == S_IFDIR, !rest.isEmpty {
        folder = entry
        continue
      }
      names[folder, default: []].insert(name)
      guard exists else { return }
      guard status.st_mode & S_IFMT == S_IFLNK else {
        if rest.isEmpty { files.insert(entry) }
        return
      }
      links += 1
      guard links <= PathDependencies.maximumLinks, let target = PathDependencies.target(of: entry) else { return }
      if target.hasPrefix("/") { folder = "/" }
      rest = target.split(separator: "/").map(String.init) + rest
    }
  }

  private static func parent(of folder: String) -> String {
    let end = folder.lastIndex(of: "/")!
    return end == folder.startIndex ? "/" : String(folder[..<end])
  }

  private static func target(of link: String) -> String? {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = target.withUnsafeMutableBytes { readlink(link, $0.baseAddress!, $0.count) }
    return count > 0 ? String(decoding: target[..<count], as: UTF8.self) : nil
  }
}

/// Watches paths by inotify(7). Ends with the object. Loop thread only.
final class PathWatch {
  private let paths: [String]
  private let descriptor: Int32
  private let touched: () -> Void
  private var event: LoopEvent?
  private var watched: PathDependencies
  /// What each of the kernel's watches is there for; nil for a file, whose every event matters.
  private var watches: [Int32: Set<String>?] = [:]

  /// How often the paths are followed anew because they changed meanwhile.
  private static let attempts = 4

  /// Calls `touched` whenever something happens on the way of a path, often several times for one change. `renew` must then
  /// be called before the files are looked at.
  ///
  /// - Parameter paths: absolute ones.
  /// - Returns: nil where the kernel gives no watch.
  init?(_ paths: [String], on loop: EventLoop, touched: @escaping () -> Void) {
    self.paths = paths
    self.touched = touched
    watched = PathDependencies(of: [])
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    guard descriptor >= 0 else { return nil }
    event = LoopEvent(on: loop, descriptor: descriptor, .read) { [unowned self] _ in readable() }
    renew()
  }

  deinit {
    event = nil
    if descriptor >= 0 { close(descriptor) }
  }

  /// Watches what the paths depend on now.
  func renew() {
    for _ in 0..<PathWatch.attempts {
      let dependencies = PathDependencies(of: paths)
      // What was removed and made anew has lost its watch, so that equal names are not enough.
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
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
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

  private func matters(_ event: inotify_event, _ name: String) -> Bool {
    if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
    // A watch that was given up on purpose is not in the list any more.
    guard let names = watches[event.wd] else { return false }
    if event.mask & UInt32(IN_IGNORED) != 0 { watches[event.wd] = nil }
    // A folder that goes, or is moved, has no name here.
    if event.mask & UInt32(IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF) != 0 {
      watched = PathDependencies(of: [])
      return true
    }
    return names?.contains(name) ?? true
  }

  private static let headerSize = 16
}
