// TemporaryFolder.swift -- a folder for one test's files, removed with all that is in it.

import Files
import Glibc

/// A folder of its own; it is removed with its last reference, with its contents. Names are relative to it.
public final class TemporaryFolder: Sendable {
  /// Where it is.
  public let path: String

  /// An empty folder below /tmp.
  public init() {
    var template = Array("/tmp/httpdnsd-test-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { preconditionFailure("no temporary folder: errno \(errno)") }
    path = String(cString: made)
  }

  deinit { TemporaryFolder.remove(path) }

  /// The path of something in it.
  public func path(of name: String) -> String { "\(path)/\(name)" }

  /// What is directly in it.
  public var names: [String] { (Folder.names(in: path) ?? []).sorted() }

  /// Writes a file, and gives its path.
  ///
  /// - Parameter mode: independent of the process's mask.
  @discardableResult
  public func write(_ octets: [UInt8], to name: String, mode: mode_t = 0o644) -> String {
    let file = path(of: name)
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    precondition(descriptor >= 0, "cannot write \(file): errno \(errno)")
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      precondition(count > 0, "cannot write \(file): errno \(errno)")
      rest = rest.dropFirst(count)
    }
    fchmod(descriptor, mode)
    close(descriptor)
    return file
  }

  /// Writes a file of text, and gives its path.
  @discardableResult
  public func write(_ text: String, to name: String, mode: mode_t = 0o644) -> String {
    write(Array(text.utf8), to: name, mode: mode)
  }

  /// What is in a file; nil if it does not exist.
  public func read(_ name: String) -> [UInt8]? {
    guard let file = fopen(path(of: name), "r") else { return nil }
    defer { fclose(file) }
    var octets: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&block, 1, block.count, file), count > 0 { octets += block[..<count] }
    return octets
  }

  /// The permission bits of a file; nil if it does not exist.
  public func mode(_ name: String) -> mode_t? {
    var status = stat()
    return stat(path(of: name), &status) == 0 ? status.st_mode & 0o7777 : nil
  }

  /// Makes a folder in it.
  public func make(_ name: String) { mkdir(path(of: name), 0o700) }

  /// Removes a file, or a folder and all that is in it.
  public func remove(_ name: String) { TemporaryFolder.remove(path(of: name)) }

  /// Renames; what has the other name is replaced.
  public func move(_ name: String, to other: String) { rename(path(of: name), path(of: other)) }

  /// Makes a symbolic link.
  public func link(_ target: String, as name: String) { symlink(target, path(of: name)) }

  private static func remove(_ path: String) {
    if unlink(path) == 0 { return }
    for name in Folder.names(in: path) ?? [] { remove("\(path)/\(name)") }
    rmdir(path)
  }
}
