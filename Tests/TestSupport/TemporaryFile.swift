// TemporaryFile.swift -- one file of a test, which may change; removed with the object.

import Glibc

/// A file for as long as the object lives.
public final class TemporaryFile: Sendable {
  /// Where it is.
  public let path: String
  private let folder = TemporaryFolder()

  /// A file of that text.
  public init(_ text: String) { path = folder.write(Array(text.utf8), to: "file", mode: 0o600) }

  /// Gives it another content.
  public func rewrite(_ text: String) { folder.write(Array(text.utf8), to: "file", mode: 0o600) }
}
