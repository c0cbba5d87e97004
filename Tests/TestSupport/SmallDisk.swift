// SmallDisk.swift -- a file system that is soon full, for tests that run as root.

/// A file system of 128 KiB.
public struct SmallDisk {
  /// Whether this user may mount one.
  public static let isAvailable: Bool = {
    let folder = TemporaryFolder()
    guard let disk = SmallDisk(at: folder.path) else { return false }
    disk.unmount()
    return true
  }()

  private let path: String

  /// - Returns: nil where this user may not mount one.
  public init?(at path: String) {
    self.path = path
    guard SmallDisk.run("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", path) else { return nil }
  }

  /// Takes it away.
  public func unmount() { _ = SmallDisk.run("umount", path) }

  private static func run(_ arguments: String...) -> Bool {
    (try? TestSupport.run(arguments, isQuiet: true)) == 0
  }
}
