// FileWriter.swift -- changes the state of a path atomically, so that a reader sees the old or the new state.
//
// Each system call that changes something is one step. The next run removes what a killed process has left beside a
// file, so this code does not clean up after a failure, but for a file that the kernel does not let it replace.

import CAccess
import Files
import Glibc

/// Writes files, links and folders below a root.
struct FileWriter {
  let root: Root
  /// Called before each step with its name; a test throws there to act as a killed process.
  var willStep: (_ step: String) throws(SetupError) -> Void = { _ throws(SetupError) in }

  /// UTIME_OMIT: leaves this timestamp unchanged.
  private static let omitted = (1 << 30) - 2

  /// The name of the new content until it replaces the old file.
  static func temporary(of real: String) -> String {
    let parent = Root.parent(of: real)
    return "\(parent)/.\(real.dropFirst(parent.count + 1)).httpdnsd-setup"
  }

  /// Replaces what is at a path with a state.
  ///
  /// - Parameter isInPlace: whether to overwrite the file instead of replacing it; the file must exist.
  func put(_ state: FileState, at path: String, isInPlace: Bool = false) throws(SetupError) {
    let real = root.real(path)
    switch state {
    case .file(let octets, let attributes):
      if isInPlace { return try overwrite(real, octets, attributes) }
      try step("write \(real)")
      try create(FileWriter.temporary(of: real), octets, attributes, like: real)
      try moveIntoPlace(real)
    case .link(let target):
      let temporary = FileWriter.temporary(of: real)
      unlink(temporary)
      try step("symlink \(real)")
      guard symlink(target, temporary) == 0 else { throw .last("symlink", real) }
      try moveIntoPlace(real)
    case .folder(let mode):
      try step("mkdir \(real)")
      guard mkdir(real, mode) == 0 || errno == EEXIST else { throw .last("mkdir", real) }
      // Overrides the umask.
      guard chmod(real, mode) == 0 else { throw .last("chmod", real) }
      synchronizeFolder(of: real)
    case .absent: try remove(real)
    case .other: preconditionFailure("a device is never put anywhere")
    }
  }

  /// Removes the temporary file that a killed process may have left beside a path.
  func removeTemporary(of path: String) { unlink(FileWriter.temporary(of: root.real(path))) }

  /// - Parameter old: the file that will be replaced; the new one gets its access lists and extended attributes.
  private func create(
    _ name: String, _ octets: [UInt8], _ attributes: FileAttributes, like old: String
  ) throws(SetupError) {
    unlink(name)
    let file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    // A new file is mostly refused by its folder.
    guard file >= 0 else { throw .last("open", FileWriter.folder(of: name)) }
    defer { close(file) }
    guard DescriptorCalls.write(octets, to: file) else { throw .last("write", name) }
    let before = open(old, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if before >= 0 {
      access_copy_attributes(before, file)
      close(before)
    }
    try finish(file, attributes, name)
  }

  /// Overwrites a file that is a mount point, which cannot be replaced. It is truncated after writing: a concurrent
  /// reader sees the new lines first, then the rest of the old ones.
  private func overwrite(_ real: String, _ octets: [UInt8], _ attributes: FileAttributes) throws(SetupError) {
    let file = open(real, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw .last("open", real) }
    defer { close(file) }
    try step("overwrite \(real)")
    guard DescriptorCalls.write(octets, to: file) else { throw .last("write", real) }
    try step("truncate \(real)")
    guard ftruncate(file, off_t(octets.count)) == 0 else { throw .last("ftruncate", real) }
    try finish(file, attributes, real)
  }

  private func finish(_ file: Int32, _ attributes: FileAttributes, _ name: String) throws(SetupError) {
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .last("fstat", name) }
    if status.st_uid != attributes.user || status.st_gid != attributes.group {
      guard fchown(file, attributes.user, attributes.group) == 0 else { throw .last("fchown", name) }
    }
    guard fchmod(file, attributes.mode) == 0 else { throw .last("fchmod", name) }
    if let modified = attributes.modified {
      let times = [
        timespec(tv_sec: 0, tv_nsec: FileWriter.omitted),
        timespec(tv_sec: modified.seconds, tv_nsec: modified.nanoseconds),
      ]
      futimens(file, times)
    }
    guard fsync(file) == 0 else { throw .last("fsync", name) }
  }

  private func moveIntoPlace(_ real: String) throws(SetupError) {
    try step("rename \(real)")
    let temporary = FileWriter.temporary(of: real)
    guard rename(temporary, real) == 0 else {
      let error = SetupError.last("rename", real)
      unlink(temporary)
      throw error
    }
    synchronizeFolder(of: real)
  }

  private func remove(_ real: String) throws(SetupError) {
    try step("remove \(real)")
    guard unlink(real) == 0 || errno == ENOENT || errno == EISDIR && rmdir(real) == 0 else {
      throw .last("unlink", real)
    }
    synchronizeFolder(of: real)
  }

  /// Makes a rename or removal survive a power failure.
  private func synchronizeFolder(of real: String) { DescriptorCalls.synchronize(folder: FileWriter.folder(of: real)) }

  private static func folder(of real: String) -> String {
    let parent = Root.parent(of: real)
    return parent.isEmpty ? "/" : parent
  }

  private func step(_ name: String) throws(SetupError) { try willStep(name) }
}
