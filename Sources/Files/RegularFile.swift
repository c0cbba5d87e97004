// RegularFile.swift -- reads a file that may hold a secret, with what says who else can read it.

import Glibc

/// The content of a regular file, and its permissions.
public struct RegularFile: Sendable {
  public let octets: [UInt8]
  /// The permission bits.
  public let mode: mode_t
  /// Whether the file is on a read-only mount, where its mode cannot be changed.
  public let isOnReadOnlyMount: Bool
  private let path: String

  /// Reads a whole file. /dev/null is accepted as an empty one.
  ///
  /// - Parameter limit: the largest accepted size in octets.
  /// - Throws: `FileFault`; for a folder `.unreadable(EISDIR)`.
  public init(_ path: String, limit: Int) throws(FileFault) {
    let (descriptor, mode) = try RegularFile.open(path)
    defer { close(descriptor) }
    var mount = statvfs()
    isOnReadOnlyMount = fstatvfs(descriptor, &mount) == 0 && mount.f_flag & UInt(ST_RDONLY) != 0
    octets = try WholeFile.read(descriptor, limit: limit)
    self.mode = mode
    self.path = path
  }

  /// Why a file could not be read now; nil if it could. Reads nothing of it.
  public static func problem(_ path: String) -> FileFault? {
    do throws(FileFault) {
      close(try open(path).descriptor)
      return nil
    } catch { return error }
  }

  /// Whether the file is on a read-only mount, or where container engines and systemd put secrets, often with a mode that lets
  /// others read: its mode is not the operator's choice.
  ///
  /// - Parameter credentials: systemd's folder of credentials, `$CREDENTIALS_DIRECTORY`.
  public func isProvided(credentials: String?) -> Bool {
    if isOnReadOnlyMount { return true }
    guard let resolved = realpath(path, nil) else { return false }
    defer { free(resolved) }
    let path = String(cString: resolved)
    return ["/run/secrets", credentials ?? ""].contains { folder in
      !folder.isEmpty && path.hasPrefix(folder.hasSuffix("/") ? folder : folder + "/")
    }
  }

  private static func open(_ path: String) throws(FileFault) -> (descriptor: Int32, mode: mode_t) {
    // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(errno) }
    var status = stat()
    do throws(FileFault) {
      guard fstat(descriptor, &status) == 0 else { throw .unreadable(errno) }
      switch status.st_mode & S_IFMT {
      case S_IFREG: break
      case S_IFCHR where status.st_rdev == nullDevice: break
      case S_IFDIR: throw .unreadable(EISDIR)
      default: throw .special
      }
      return (descriptor, status.st_mode & 0o7777)
    } catch {
      close(descriptor)
      throw error
    }
  }

  private static let nullDevice = dev_t(1 << 8 | 3)
}
