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
    /// What was found.
    let found: String
    /// What would help.
    let remedy: String
    /// Whether permissions are what is missing.
    var isDenied = false
  }

  /// Reads a file.
  static func read(_ path: String, limit: Int) throws(Failure) -> FileContent {
    // Non-blocking, because opening a FIFO would wait for its writer.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw failure(errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw failure(errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(found: "something that is not a regular file", remedy: "a regular file")
    }
    var mount = statvfs()
    let isReadOnly = fstatvfs(file, &mount) == 0 && mount.f_flag & UInt(ST_RDONLY) != 0
    do throws(FileFault) {
      return FileContent(
        octets: try WholeFile.read(file, limit: limit), mode: status.st_mode & 0o7777, isOnReadOnlyMount: isReadOnly)
    } catch .unreadable(let code) {
      throw failure(code)
    } catch {
      throw Failure(found: "a file of more than \(limit) octets", remedy: "at most \(limit) octets")
    }
  }

  private static func failure(_ code: Int32) -> Failure {
    let reason = String(cString: strerror(code))
    let user = geteuid() == 0 ? "root" : "user \(geteuid())"
    return switch code {
    case EACCES, EPERM:
      Failure(
        found: "a file that \(user) may not read", remedy: "a file that \(user) can reach and read (chmod, chown)",
        isDenied: true)
    case ENOENT, ENOTDIR: Failure(found: "no such file", remedy: "a file that exists")
    default: Failure(found: "a file that \(user) cannot read (\(reason))", remedy: "a readable file")
    }
  }
}
