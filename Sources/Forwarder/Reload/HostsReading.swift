// HostsReading.swift -- reads the hosts file of a configuration, for the daemon and for `httpdnsd check`.

import Configuration
import Files
import Glibc
import Routing

/// A hosts file as it was read. Any thread.
package struct HostsReading: Sendable {
  /// Its octets; empty if there is no such file.
  let octets: [UInt8]
  /// Its names and addresses.
  let file: HostsFile
  /// Why it could not be read, in one line; nil if it was.
  let failure: String?
  /// What could not be read in it, in one line; nil if all of it was.
  let remark: String?

  /// Reads the file of a configuration. Blocks.
  init(_ names: Configuration.Names) {
    guard let path = names.hostsFile else {
      self.init(octets: [], HostsFile())
      return
    }
    do throws(FileFault) {
      let octets = try WholeFile.read(path, limit: HostsFile.maximumSize)
      let file = try HostsFile(octets: octets)
      self.init(octets: octets, file, remark: HostsReading.remark(file, path))
    } catch { self.init(octets: [], HostsFile(), failure: "\(path): \(error)") }
  }

  /// A file whose octets were read earlier, with the same limit.
  init(octets: [UInt8]) { self.init(octets: octets, (try? HostsFile(octets: octets)) ?? HostsFile()) }

  private init(octets: [UInt8], _ file: HostsFile, failure: String? = nil, remark: String? = nil) {
    self.octets = octets
    self.file = file
    self.failure = failure
    self.remark = remark
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
