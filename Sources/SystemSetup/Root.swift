// Root.swift -- reads below a folder that acts as the root of a machine; links inside it never lead out of it.

import Files
import Glibc

/// The root of this machine, or a folder with the root of another one. All path arguments are absolute paths inside it.
public struct Root: Sendable {
  /// The folder without a trailing slash; empty for this machine.
  let folder: String

  /// An empty text or "/" stands for this machine.
  public init(_ folder: String = "") {
    var folder = folder[...]
    while folder.hasSuffix("/") { folder.removeLast() }
    self.folder = String(folder)
  }

  /// Whether this is the root of the running machine.
  public var isMachine: Bool { folder.isEmpty }

  /// Whether the folder exists.
  public var isPresent: Bool {
    var status = stat()
    return isMachine || stat(folder, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns the path with the folder in front, for messages and other programs; links are not resolved.
  public func file(_ path: String) -> String { folder + path }

  /// The largest file that setup reads, in octets.
  static let largestFile = 1 << 20
  private static let mostLinks = 40

  /// Returns the path for system calls: all folders on the way are real, only the last part may be a link.
  func real(_ path: String) -> String {
    var (folder, rest, links) = ("", path.split(separator: "/").map(String.init)[...], 0)
    while let name = rest.popFirst() {
      switch name {
      case ".": continue
      case "..": folder = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? ""
      default:
        let entry = "\(folder)/\(name)"
        guard !rest.isEmpty, links < Root.mostLinks, let target = Folder.target(ofLink: self.folder + entry) else {
          folder = entry
          continue
        }
        links += 1
        if target.hasPrefix("/") { folder = "" }
        rest = target.split(separator: "/").map(String.init) + rest
      }
    }
    return self.folder + folder
  }

  /// Returns the paths of systemd's drop-ins, sorted by name: of equal names, the one in the first of the folders.
  func dropIns(in folders: [String]) -> [String] {
    let found = folders.flatMap { folder in names(in: folder).filter { $0.hasSuffix(".conf") }.map { ($0, folder) } }
    return Dictionary(found) { first, _ in first }.sorted { $0.key < $1.key }.map { "\($1)/\($0)" }
  }

  /// Returns where a path leads after all links, inside the root; the destination need not exist.
  func destination(of path: String) -> String {
    var path = path
    for _ in 0..<Root.mostLinks {
      let real = real(path)
      guard let target = Folder.target(ofLink: real) else { return String(real.dropFirst(folder.count)) }
      path = target.hasPrefix("/") ? target : Root.parent(of: String(real.dropFirst(folder.count))) + "/" + target
    }
    return path
  }

  /// Returns the state of a path.
  ///
  /// - Throws: if it cannot be read, or is larger than `largestFile`.
  func state(of path: String) throws(SetupError) -> FileState {
    let real = real(path)
    var status = stat()
    guard lstat(real, &status) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return .absent }
      throw .last("lstat", path)
    }
    switch status.st_mode & S_IFMT {
    case S_IFLNK: return .link(to: Folder.target(ofLink: real) ?? "")
    case S_IFDIR: return .folder(mode: status.st_mode & 0o7777)
    case S_IFREG: return .file(try octets(of: path), FileAttributes(status))
    default: return .other
    }
  }

  /// Reads a file; follows links inside the root.
  func octets(of path: String) throws(SetupError) -> [UInt8] {
    do throws(FileFault) {
      return try WholeFile.read(real(destination(of: path)), limit: Root.largestFile)
    } catch {
      switch error {
      case .unreadable(let number): throw .system(path: path, call: "read", number: number)
      case .special, .tooLarge: throw .refused("\(path): \(error)")
      }
    }
  }

  /// Reads a text file; nil if it does not exist or cannot be read.
  func text(of path: String) -> String? { (try? octets(of: path)).map { String(decoding: $0, as: UTF8.self) } }

  /// Returns whether a path exists; follows links.
  public func exists(_ path: String) -> Bool { access(real(destination(of: path)), F_OK) == 0 }

  /// Returns the names in a folder, sorted; empty if the folder does not exist.
  func names(in path: String) -> [String] { (Folder.names(in: real(destination(of: path))) ?? []).sorted() }

  /// Returns whether the path is a mount point, so that it cannot be replaced.
  func isMountPoint(_ path: String) -> Bool {
    // The kernel lists mounts as seen from this process's root, and `folder` may contain links.
    guard let resolved = realpath(real(path), nil) else { return false }
    defer { free(resolved) }
    let name = String(cString: resolved)
    let mounts = Root().text(of: "/proc/self/mountinfo") ?? ""
    return mounts.split(separator: "\n").contains { line in
      let fields = line.split(separator: " ")
      return fields.count > 4 && Root.unescaped(fields[4]) == name
    }
  }

  static func parent(of path: String) -> String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "" }

  /// A name from mountinfo, which escapes white space and backslashes as `\` with three octal digits.
  private static func unescaped(_ text: Substring) -> String {
    var (octets, rest) = ([UInt8](), Array(text.utf8)[...])
    while let octet = rest.popFirst() {
      let digits = String(decoding: rest.prefix(3), as: UTF8.self)
      if octet == UInt8(ascii: "\\"), digits.utf8.count == 3, let value = UInt8(digits, radix: 8) {
        octets.append(value)
        rest = rest.dropFirst(3)
      } else {
        octets.append(octet)
      }
    }
    return String(decoding: octets, as: UTF8.self)
  }
}

extension FileAttributes {
  init(_ status: stat) {
    self.init(
      mode: status.st_mode & 0o7777, user: status.st_uid, group: status.st_gid,
      modified: FileTime(seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec))
  }
}
