// FileContent.swift -- reads a whole regular file of limited size, with what its permissions say.

import Files
import Glibc

/// The content of a regular file.
struct FileContent {
  let octets: [UInt8]
  /// The permission bits.
  let mode: mode_t
  /// Whether the file's mount is read-only.
  let isOnReadOnlyMount: Bool

  /// Why a file could not be read.
  struct Failure: Error {
    /// What is wrong with it.
    enum Kind: Equatable { case missing, denied, directory, special, tooLarge(limit: Int), unreadable }

    let kind: Kind
    /// What is wrong with it, in words that `remedy` goes on with.
    let found: String

    /// How the two are put together.
    var wording: Mistake.Wording { if case .tooLarge = kind { .value } else { .failure } }

    /// What would help.
    ///
    /// - Parameters:
    ///   - wanted: what the file has to be, with its article.
    ///   - missing: what to do where there is none.
    func remedy(_ wanted: String, missing: String) -> String {
      switch kind {
      case .missing: missing
      case .denied: "that user has to be able to read it (chmod) and to enter its folders"
      case .directory, .special, .unreadable: "expected \(wanted)"
      case .tooLarge(let limit): "at most \(limit) octets"
      }
    }
  }

  /// Reads a file.
  static func read(_ path: String, limit: Int) throws(Failure) -> FileContent {
    // Non-blocking, because opening a FIFO would wait for its writer.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw failure(errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw failure(errno) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFCHR where status.st_rdev == nullDevice: break
    case S_IFDIR: throw Failure(kind: .directory, found: "is a directory")
    default: throw Failure(kind: .special, found: "is not a regular file")
    }
    var mount = statvfs()
    let isReadOnly = fstatvfs(file, &mount) == 0 && mount.f_flag & UInt(ST_RDONLY) != 0
    do throws(FileFault) {
      return FileContent(
        octets: try WholeFile.read(file, limit: limit), mode: status.st_mode & 0o7777, isOnReadOnlyMount: isReadOnly)
    } catch .unreadable(let code) {
      throw failure(code)
    } catch {
      throw Failure(kind: .tooLarge(limit: limit), found: "a file of more than \(limit) octets")
    }
  }

  /// /dev/null, which stands for an empty file.
  private static let nullDevice = dev_t(1 << 8 | 3)

  private static func failure(_ code: Int32) -> Failure {
    switch code {
    case EACCES, EPERM: Failure(kind: .denied, found: "\(Reader.ours.user) may not read it")
    case ENOENT, ENOTDIR: Failure(kind: .missing, found: "no such file")
    default: Failure(kind: .unreadable, found: "cannot be read (\(String(cString: strerror(code))))")
    }
  }
}
