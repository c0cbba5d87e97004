// Files.swift -- the simulator's complaint, and the whole files that it reads and writes at startup.

import Files
import Glibc

/// What is wrong with an argument, a file, a setting or a fault, and what is allowed.
struct SimulatorError: Error, Equatable, CustomStringConvertible {
  let description: String
}

func readText(_ path: String) throws(SimulatorError) -> String {
  do {
    return String(decoding: try WholeFile.read(path, limit: .max), as: UTF8.self)
  } catch {
    throw SimulatorError(description: "\(path): \(error)")
  }
}

/// Creates or overwrites a file with default permissions.
func write(_ octets: [UInt8], to path: String) throws(SimulatorError) {
  let file = fopen(path, "we")
  let count = file.map { fwrite(octets, 1, octets.count, $0) }
  guard let file, fclose(file) == 0, count == octets.count else {
    throw SimulatorError(description: "\(path): \(String(cString: strerror(errno)))")
  }
}
