// WholeFile.swift -- reads a file from its beginning to its end, if that comes soon enough.

import Glibc

/// Why a file was not read.
public enum FileFault: Error, Hashable, Sendable {
  /// It could not be opened or read; the system's error number.
  case unreadable(Int32)
  /// It has more octets than were wanted.
  case tooLarge
}

extension FileFault: CustomStringConvertible {
  /// The system's words, or that it is too large.
  public var description: String {
    switch self {
    case .unreadable(let code): String(cString: strerror(code))
    case .tooLarge: "too large"
    }
  }
}

/// Reads small files. Blocks as long as the disk does, and not for a FIFO's writer.
public enum WholeFile {
  private static let chunk = 16_384

  /// All octets of what is at a path.
  ///
  /// - Parameter limit: octets; a longer file is refused, one without an end too.
  /// - Throws: `FileFault`
  public static func read(_ path: String, limit: Int) throws(FileFault) -> [UInt8] {
    // Non-blocking, because opening a FIFO would wait for its writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(errno) }
    defer { close(descriptor) }
    return try read(descriptor, limit: limit)
  }

  /// All octets from where an open file stands. The descriptor stays the caller's.
  ///
  /// - Throws: `FileFault`
  public static func read(_ descriptor: Int32, limit: Int) throws(FileFault) -> [UInt8] {
    var octets: [UInt8] = []
    var part = [UInt8](repeating: 0, count: chunk)
    while true {
      let count = Glibc.read(descriptor, &part, part.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .unreadable(errno) }
      guard count > 0 else { return octets }
      guard octets.count + count <= limit else { throw .tooLarge }
      octets += part[..<count]
    }
  }
}
