// Files.swift -- reads and writes whole files at startup.

import Glibc

/// A file could not be read or written.
struct FileError: Error, CustomStringConvertible {
  let description: String

  fileprivate init(_ path: String) { description = "\(path): \(String(cString: strerror(errno)))" }
}

func readText(_ path: String) throws(FileError) -> String {
  guard let file = fopen(path, "re") else { throw FileError(path) }
  defer { fclose(file) }
  var text: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    guard count > 0 else { break }
    text += buffer[..<count]
  }
  guard ferror(file) == 0 else { throw FileError(path) }
  return String(decoding: text, as: UTF8.self)
}

/// Creates or overwrites a file with default permissions.
func write(_ octets: [UInt8], to path: String) throws(FileError) {
  guard let file = fopen(path, "we") else { throw FileError(path) }
  let count = fwrite(octets, 1, octets.count, file)
  guard fclose(file) == 0, count == octets.count else { throw FileError(path) }
}
