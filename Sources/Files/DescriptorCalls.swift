// DescriptorCalls.swift -- the steps of writing a file that every writer shares.

import Glibc

/// System calls on an open file or on a folder. They block for the disk.
package enum DescriptorCalls {
  /// Writes all octets at the current position, however many calls that takes.
  ///
  /// - Returns: false if the system refuses one; `errno` has the reason.
  package static func write(_ octets: [UInt8], to descriptor: Int32) -> Bool {
    octets.withUnsafeBytes { octets in
      var written = 0
      while written < octets.count {
        let count = Glibc.write(descriptor, octets.baseAddress! + written, octets.count - written)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        written += count
      }
      return true
    }
  }

  /// Makes a rename in the folder, or a removal from it, survive a power failure. Does nothing if the folder is not
  /// readable or its file system cannot do this: the content of the file is on the disk already.
  package static func synchronize(folder: String) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }
}
