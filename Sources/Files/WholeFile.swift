// WholeFile.swift -- reads a whole file up to a size limit.

import Glibc

/// The reason why a file was not read.
public enum FileFault: Error, Hashable, Sendable {
  /// It could not be opened or read; the system's error number.
  case unreadable(Int32)
  /// It is a device, a FIFO or a socket.
  case special
  /// It exceeds the limit, in octets.
  case tooLarge(limit: Int)
}

extension FileFault: CustomStringConvertible {
  /// The system's message, or `larger than 16 MiB`.
  public var description: String {
    switch self {
    case .unreadable(let code): String(cString: strerror(code))
    case .special: "not a regular file"
    case .tooLarge(let limit): "larger than \(FileFault.size(limit))"
    }
  }

  private static func size(_ octets: Int) -> String {
    let units = [(name: "MiB", octets: 1 << 20), (name: "KiB", octets: 1 << 10)]
    guard let unit = units.first(where: { octets.isMultiple(of: $0.octets) }) else { return "\(octets) octets" }
    return "\(octets / unit.octets) \(unit.name)"
  }
}

/// Reads small files. Blocks for the disk, but not for the writer of a FIFO.
public enum WholeFile {
  private static let chunk = 16_384

  /// All octets of a file.
  ///
  /// - Parameter limit: the largest accepted size in octets; endless files are refused too.
  /// - Throws: `FileFault`
  public static func read(_ path: String, limit: Int) throws(FileFault) -> [UInt8] {
    // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw .unreadable(errno) }
    defer { close(descriptor) }
    return try read(descriptor, limit: limit)
  }

  /// All octets from the current position of an open file. The descriptor stays the caller's.
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
      guard octets.count + count <= limit else { throw .tooLarge(limit: limit) }
      octets += part[..<count]
    }
  }
}
