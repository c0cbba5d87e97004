// FileContent.swift -- reads a whole regular file of limited size, with its permissions.

import Files
import Glibc

/// The content of a regular file.
struct FileContent {
  let octets: [UInt8]
  /// The permission bits.
  let mode: mode_t
  /// Whether the file is on a read-only mount, where its mode cannot be changed.
  let isOnReadOnlyMount: Bool

  /// Why a file could not be read.
  struct Failure: Error {
    enum Kind: Equatable { case missing, notPermitted, directory, special, tooLarge, unreadable }

    let kind: Kind
    /// What is wrong with the file: the first clause of a `Mistake` of the wording `.failure`.
    let found: String

    /// What to do about it: the second clause.
    ///
    /// - Parameters:
    ///   - wanted: the expected kind of file, with its article.
    ///   - missing: the remedy if the file does not exist.
    func remedy(_ wanted: String, missing: String) -> String {
      switch kind {
      case .missing: missing
      case .notPermitted: "allow this user to read it (chmod) and to enter its folders"
      case .directory, .special, .tooLarge, .unreadable: "expected \(wanted)"
      }
    }
  }

  /// Why a file could not be read now, as `Failure.found`; nil if it could. Reads nothing of it.
  static func problem(_ path: String) -> String? {
    do throws(Failure) {
      close(try opened(path).file)
      return nil
    } catch { return error.found }
  }

  private static func opened(_ path: String) throws(Failure) -> (file: Int32, mode: mode_t) {
    // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw failure(errno) }
    var status = stat()
    do throws(Failure) {
      guard fstat(file, &status) == 0 else { throw failure(errno) }
      switch status.st_mode & S_IFMT {
      case S_IFREG: break
      case S_IFCHR where status.st_rdev == nullDevice: break
      case S_IFDIR: throw Failure(kind: .directory, found: "is a directory")
      default: throw Failure(kind: .special, found: "is not a regular file")
      }
      return (file, status.st_mode & 0o7777)
    } catch {
      close(file)
      throw error
    }
  }

  static func read(_ path: String, limit: Int) throws(Failure) -> FileContent {
    let (file, mode) = try opened(path)
    defer { close(file) }
    var mount = statvfs()
    let isReadOnly = fstatvfs(file, &mount) == 0 && mount.f_flag & UInt(ST_RDONLY) != 0
    do throws(FileFault) {
      return FileContent(
        octets: try WholeFile.read(file, limit: limit), mode: mode, isOnReadOnlyMount: isReadOnly)
    } catch .unreadable(let code) {
      throw failure(code)
    } catch {
      throw Failure(kind: .tooLarge, found: "is \(error)")
    }
  }

  /// /dev/null is accepted as an empty file.
  private static let nullDevice = dev_t(1 << 8 | 3)

  private static func failure(_ code: Int32) -> Failure {
    switch code {
    case EACCES, EPERM: Failure(kind: .notPermitted, found: "\(Reader.ours.user) may not read it")
    case ENOENT, ENOTDIR: Failure(kind: .missing, found: "no such file")
    default: Failure(kind: .unreadable, found: "cannot be read (\(String(cString: strerror(code))))")
    }
  }
}
