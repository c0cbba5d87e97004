// HostsReading.swift -- reads the hosts file of a configuration, for the daemon and for `httpdnsd check`.

import Configuration
import Files
import Glibc
import Routing

/// A hosts file as it was read. Any thread.
package struct HostsReading: Sendable {
  /// Its octets; empty if there is no such file.
  private(set) var octets: [UInt8] = []
  /// Its names and addresses.
  private(set) var file = HostsFile()
  /// Why it could not be read, in one line; nil if it was.
  private(set) var failure: String?
  /// What could not be read in it, in one line; nil if all of it was.
  private(set) var remark: String?

  /// Reads the file of a configuration. Blocks.
  init(_ names: Configuration.Names) {
    guard let path = names.hostsFile else { return }
    do throws(FileFault) {
      let found = try WholeFile.read(path, limit: HostsFile.maximumSize)
      file = try HostsFile(octets: found)
      octets = found
      remark = HostsReading.remark(file, path)
    } catch { failure = "\(path): \(error)" }
  }

  /// A file whose octets were read earlier, with the same limit.
  init(octets: [UInt8]) {
    self.octets = octets
    file = (try? HostsFile(octets: octets)) ?? HostsFile()
  }

  /// One line about what the daemon cannot use of the hosts file; nil if it can use all of it, or if the default path
  /// does not exist. Blocks.
  package static func problem(_ configuration: Configuration) -> String? {
    let path = configuration.names.hostsFile
    if let path, path == HostsReading.usual, access(path, F_OK) != 0 { return nil }
    let reading = HostsReading(configuration.names)
    return reading.failure ?? reading.remark
  }

  /// The default of `names.hosts_file`, which a container may well lack.
  private static let usual = Configuration().names.hostsFile

  private static func remark(_ file: HostsFile, _ path: String) -> String? {
    guard let first = file.firstSkipped else { return nil }
    let lines = file.skippedLines == 1 ? "1 line" : "\(file.skippedLines) lines"
    return "\(path): \(lines) cannot be read, the first is \(first)"
  }
}
