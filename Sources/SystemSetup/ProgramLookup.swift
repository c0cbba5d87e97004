// ProgramLookup.swift -- looks up a name as an ordinary program of an ordinary user does.
//
// What /etc/resolv.conf and other files say is not what programs get: another program may have replaced them, a service may
// not run, a file may be unreadable for other users. So a child asks, by getaddrinfo and without root's privileges.

import Glibc

/// The result of a lookup by this machine's C library.
public enum ProgramLookup: Hashable, Sendable {
  /// The first IPv4 address.
  case address(String)
  /// The name does not exist, or no server answered.
  case noAddress
  /// The lookup could not be made.
  case failed

  /// In seconds; the C library asks a silent server for ten, and three servers for thirty.
  static let patience = 8

  /// The UID of an unprivileged user, which every Debian system has.
  private static let user = 65_534

  /// The exit code of getent(1) for an option that it does not know: EX_USAGE.
  private static let unknownOption: Int32 = 64

  /// Looks up a name. Blocks.
  public static func find(_ name: String) -> ProgramLookup {
    let privileges = geteuid() == 0 ? "setpriv --reuid=\(user) --regid=\(user) --clear-groups " : ""
    let path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
    func ask(_ option: String) -> (status: Int32?, output: String) {
      let command = "exec timeout \(patience) \(privileges)getent \(option) ahostsv4 \"$0\" 2> /dev/null"
      return SystemCommand("sh", "-c", "\(path); \(command)", name).run()
    }
    // IPv4 addresses also where this machine has none. The C library of Debian 11 does not know the option.
    var (status, output) = ask("--no-addrconfig")
    if status == unknownOption { (status, output) = ask("") }
    switch status {
    case 0: return output.split(whereSeparator: \.isWhitespace).first.map { .address(String($0)) } ?? .noAddress
    // getent: no such name; timeout: it has ended the lookup.
    case 2, 124: return .noAddress
    default: return .failed
    }
  }
}
