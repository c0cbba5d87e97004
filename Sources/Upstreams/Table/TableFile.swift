// TableFile.swift -- reads the table of kind "table" from a file, for the daemon and for `httpdnsd check`.

import Configuration
import Glibc
import HTTPDNS
import Persistence

/// The file of a table.
package enum TableFile {
  /// Its octets; nil if it cannot be read.
  static func octets(_ path: String) -> [UInt8]? {
    StateFile(path: path, onFailure: { _ in }).read(limit: AddressTable.mostOctets)
  }

  /// Why the file could not be read, from the errno of another attempt.
  static func unreadable(_ path: String) -> String {
    let problem = access(path, R_OK) == 0 ? nil : String(cString: strerror(errno))
    return "\(path): \(problem ?? "not a file, or longer than \(AddressTable.mostOctets) octets")"
  }

  /// One line for each table in a file that the daemon could not use, or that is switched off. Blocks on file I/O.
  package static func problems(_ configuration: Configuration) -> [String] {
    configuration.providers.compactMap { provider in
      guard case .table(let source) = provider.kind, case .file(let path) = source.location else { return nil }
      return problem(path).map { "provider[\"\(provider.name)\"].file: \($0)" }
    }
  }

  private static func problem(_ path: String) -> String? {
    guard let octets = octets(path) else { return unreadable(path) }
    do throws(AddressTableFault) {
      return try AddressTable(text: octets).isEnabled ? nil : "\(path): \(TableAbsence.switchedOff.text)"
    } catch { return "\(path): \(error)" }
  }
}
