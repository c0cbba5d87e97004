// FileReplacement.swift -- replaces a file as a whole: a reader gets the old or the new content, never a part of it, even if
// the program is killed or the machine loses power.

import Glibc

/// The reason why a file could not be read or written: one line with its path, the system's message and the user.
public struct FileProblem: Error, Hashable, CustomStringConvertible {
  /// The line.
  public let description: String

  package init(_ path: String, _ reason: String) { description = "\(path): \(reason)" }

  /// The current `errno`.
  package init(ofLastCall path: String) {
    self.init(path, "\(String(cString: strerror(errno))) (user \(geteuid()))")
  }
}

extension FileProblem {
  /// The reason why no file can be created or replaced at the path, judged by the permissions of its folder; nil if the
  /// permissions allow it.
  public static func foreseeable(at path: String) -> FileProblem? {
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    return access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 ? nil : FileProblem(ofLastCall: path)
  }
}

/// The new content of a file, in a temporary file beside it until `commit`; without `commit` the old content stays. One
/// thread.
package final class FileReplacement {
  private let path: String
  private let temporary: String
  private var file: Int32

  /// The name of the temporary file. One that a killed program has left is overwritten.
  package static func temporaryName(of path: String) -> String { "\(path).new" }

  /// The number of attempts to lock the temporary file while other writers rename theirs into place.
  private static let attempts = 10

  /// Creates an empty temporary file with mode 0600.
  ///
  /// - Throws: also if another program or thread is replacing the same file.
  package init(of path: String) throws(FileProblem) {
    self.path = path
    temporary = FileReplacement.temporaryName(of: path)
    file = -1
    for _ in 0..<FileReplacement.attempts {
      // O_NONBLOCK: opening a FIFO would otherwise wait for its reader.
      let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
      let opened = open(temporary, flags, 0o600)
      guard opened >= 0 else { throw FileProblem(ofLastCall: path) }
      // The lock ends with the program, so a leftover file does not stop the next one. A file system without locks
      // has only one writer.
      guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
        close(opened)
        throw FileProblem(path, "another program is writing it")
      }
      // The previous holder of the lock may have renamed the file into place.
      if OpenFile.isNamed(temporary, opened) {
        file = opened
        break
      }
      close(opened)
    }
    guard file >= 0 else { throw FileProblem(path, "another program is writing it") }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      // Not this program's to remove.
      close(file)
      file = -1
      throw FileProblem(path, "\(temporary) is not a regular file")
    }
    guard fchmod(file, 0o600) == 0, ftruncate(file, 0) == 0 else { throw FileProblem(ofLastCall: path) }
  }

  deinit {
    guard file >= 0 else { return }
    unlink(temporary)
    close(file)
  }

  /// Adds octets at the end. May block.
  package func append(_ octets: [UInt8]) throws(FileProblem) {
    guard DescriptorCalls.write(octets, to: file) else { throw FileProblem(ofLastCall: path) }
  }

  /// Replaces the old content by the new one, on the disk as well. May block. Call nothing afterwards.
  package func commit() throws(FileProblem) {
    guard fsync(file) == 0 else { throw FileProblem(ofLastCall: path) }
    // rename would also replace a device: a configured path such as /dev/null must not destroy it.
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG, status.st_mode & S_IFMT != S_IFLNK {
      throw FileProblem(path, "it is not a regular file")
    }
    guard rename(temporary, path) == 0 else { throw FileProblem(ofLastCall: path) }
    close(file)
    file = -1
    let end = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    DescriptorCalls.synchronize(folder: end == path.startIndex ? "." : String(path[..<end]))
  }
}
