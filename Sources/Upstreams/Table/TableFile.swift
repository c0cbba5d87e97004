// TableFile.swift -- reads the table of kind "table" from a file, for the daemon and for `httpdnsd check`.

import Configuration
import Files
import Glibc
import HTTPDNS

package enum TableFile {
  /// Why a file is no table, human-readable.
  struct Fault: Error {
    let text: String
  }

  /// Reads and parses it. Blocks on file I/O.
  static func table(_ path: String) throws(Fault) -> AddressTable {
    let octets: [UInt8]
    do throws(FileFault) {
      octets = try WholeFile.read(path, limit: AddressTable.mostOctets)
    } catch { throw Fault(text: "\(path): \(error)") }
    do throws(AddressTableFault) {
      return try AddressTable(text: octets)
    } catch { throw Fault(text: "\(path): \(error)") }
  }

  /// Its size in octets; 0 if it cannot be read.
  static func size(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// One line for each table in a file that the daemon could not use, or that is switched off. Blocks on file I/O.
  package static func problems(_ configuration: Configuration) -> [String] {
    configuration.providers.compactMap { provider in
      guard case .table(let source) = provider.kind, case .file(let path) = source.location else { return nil }
      return problem(path).map { "provider[\"\(provider.name)\"].file: \($0)" }
    }
  }

  private static func problem(_ path: String) -> String? {
    do throws(Fault) {
      return try table(path).isEnabled ? nil : "\(path): \(TableAbsence.switchedOff.text)"
    } catch { return error.text }
  }
}
