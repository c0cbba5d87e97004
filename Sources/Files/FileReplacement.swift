// FileReplacement.swift -- a file is replaced as a whole: whoever reads it gets the old content or the new one, never a
// part, whatever happens to the program or the machine meanwhile.

import Glibc

/// Why a file could not be read or written, in one line for a person: its path, the reason and the user.
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
  /// Why no file could be made or replaced there, as far as its folder tells; nil where nothing speaks against it.
  public static func foreseeable(at path: String) -> FileProblem? {
    let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
    return access(folder.isEmpty ? "/" : folder, W_OK | X_OK) == 0 ? nil : FileProblem(ofLastCall: path)
  }
}

/// The new content of a file, written beside it until `commit`; without that the old content stays. One thread.
package final class FileReplacement {
  private let path: String
  private let temporary: String
  private var file: Int32

  /// What a file is called while it is written. What a program that was killed has left there is overwritten.
  static func temporaryName(of path: String) -> String { "\(path).new" }

  /// How often the name is taken by somebody who has just finished, before that counts as somebody who is writing.
  private static let attempts = 10

  /// Begins an empty file with mode 0600.
  ///
  /// - Throws: also where another program, or another thread, is replacing the same file.
  package init(of path: String) throws(FileProblem) {
    self.path = path
    temporary = FileReplacement.temporaryName(of: path)
    file = -1
    for _ in 0..<FileReplacement.attempts {
      // Without waiting: for a FIFO nobody may ever come.
      let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
      let opened = open(temporary, flags, 0o600)
      guard opened >= 0 else { throw FileProblem(ofLastCall: path) }
      // The lock ends with the program, so nothing that is left over can keep the next one from writing. Where a
      // file system has no locks, there is only one writer anyway.
      guard flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
        close(opened)
        throw FileProblem(path, "it is being written by somebody else")
      }
      // Who had the lock before has perhaps given the file its final name.
      if OpenFile.isNamed(temporary, opened) {
        file = opened
        break
      }
      close(opened)
    }
    guard file >= 0 else { throw FileProblem(path, "it is being written by somebody else") }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      // Not ours to remove.
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
    var written = 0
    while written < octets.count {
      let count = octets[written...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileProblem(ofLastCall: path) }
      written += count
    }
  }

  /// Puts the new content in the place of the old one, on the disk too. May block; nothing may follow.
  package func commit() throws(FileProblem) {
    guard fsync(file) == 0 else { throw FileProblem(ofLastCall: path) }
    // rename would also replace a device: a path like /dev/null is a mistake that must not cost the machine that.
    var status = stat()
    if lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG, status.st_mode & S_IFMT != S_IFLNK {
      throw FileProblem(path, "it is not a regular file")
    }
    guard rename(temporary, path) == 0 else { throw FileProblem(ofLastCall: path) }
    close(file)
    file = -1
    syncFolder()
  }

  /// The new name survives a power failure from now on. The content is there already: where a file system cannot do
  /// this, or the folder cannot be read, there is nothing to tell.
  private func syncFolder() {
    let end = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    let name = end == path.startIndex ? "." : String(path[..<end])
    let folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { return }
    fsync(folder)
    close(folder)
  }
}
