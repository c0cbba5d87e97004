// TableFile.swift -- reads the table of kind "table" from a file, for the daemon and for `httpdnsd check`.

import Configuration
import Files
import HTTPDNS

/// The file of a table.
package enum TableFile {
  /// Its octets.
  static func octets(_ path: String) throws(FileFault) -> [UInt8] {
    try WholeFile.read(path, limit: AddressTable.mostOctets)
  }

  /// One line for each table in a file that the daemon could not use, or that is switched off. Blocks on file I/O.
  package static func problems(_ configuration: Configuration) -> [String] {
    configuration.providers.compactMap { provider in
      guard case .table(let source) = provider.kind, case .file(let path) = source.location else { return nil }
      return problem(path).map { "provider[\"\(provider.name)\"].file: \($0)" }
    }
  }

  private static func problem(_ path: String) -> String? {
    let octets: [UInt8]
    do throws(FileFault) {
      octets = try TableFile.octets(path)
    } catch { return "\(path): \(error)" }
    do throws(AddressTableFault) {
      return try AddressTable(text: octets).isEnabled ? nil : "\(path): \(TableAbsence.switchedOff.text)"
    } catch { return "\(path): \(error)" }
  }
}
