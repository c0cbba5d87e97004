// SmallDisk.swift -- a file system that is soon full, for tests that run as root.

/// A file system of 128 KiB on a folder, for as long as the object lives.
public final class SmallDisk {
  /// Whether this user may mount one.
  public static let isAvailable = SmallDisk(on: TemporaryFolder()) != nil

  private let folder: TemporaryFolder

  /// - Returns: nil where this user may not mount one.
  public init?(on folder: TemporaryFolder) {
    self.folder = folder
    guard SmallDisk.run("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder.path) else { return nil }
  }

  // At once, also while a file on it is open.
  deinit { _ = SmallDisk.run("umount", "--lazy", folder.path) }

  private static func run(_ arguments: String...) -> Bool {
    (try? TestSupport.run(arguments, isQuiet: true)) == 0
  }
}
