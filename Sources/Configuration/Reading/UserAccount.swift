// UserAccount.swift -- a user of this machine: its name, its numbers, and what to advise where it may not read a file.
//
// Users are looked up in /etc/passwd alone: a directory service could ask us for the name of its server.

import Glibc

/// A user of this machine.
public struct UserAccount: Equatable, Sendable {
  /// What /etc/passwd calls it.
  public let name: String
  /// Its number.
  public let user: uid_t
  /// The number of its group.
  public let group: gid_t

  /// The numbers that systemd gives to users that exist only while a service runs: the next start has another one.
  static let passing: ClosedRange<uid_t> = 61_184...65_519

  /// The user of that name; nil where there is none.
  ///
  /// - Parameter file: a file in the format of passwd(5).
  public init?(_ name: String, in file: String = "/etc/passwd") {
    self.init(in: file) { $0.name == name }
  }

  /// The user of that number; nil where there is none.
  init?(number: uid_t, in file: String = "/etc/passwd") {
    self.init(in: file) { $0.user == number }
  }

  private init?(in file: String, where isWanted: (UserAccount) -> Bool) {
    guard let stream = fopen(file, "re") else { return nil }
    defer { fclose(stream) }
    while let entry = fgetpwent(stream)?.pointee {
      let account = UserAccount(name: String(cString: entry.pw_name), user: entry.pw_uid, group: entry.pw_gid)
      if isWanted(account) {
        self = account
        return
      }
    }
    return nil
  }

  private init(name: String, user: uid_t, group: gid_t) {
    (self.name, self.user, self.group) = (name, user, group)
  }
}

/// The user as whom files are read, in words.
struct Reader {
  /// `root`, `user httpdnsd`, or `user 65532` where it has no name.
  let user: String
  /// What makes a secret readable for this user.
  let secretRemedy: String

  /// This process.
  static var ours: Reader { Reader(geteuid(), UserAccount(number: geteuid())?.name) }

  /// A user by its number; it may have a name.
  init(_ number: uid_t, _ name: String?) {
    let called = name ?? "\(number)"
    user = number == 0 ? "root" : "user \(called)"
    let isPassing = name == nil && UserAccount.passing.contains(number)
    secretRemedy =
      isPassing
      ? "a systemd credential (LoadCredential=), because \(user) exists only while the service runs"
      : "a file that \(user) owns (chown \(called)) and can reach, or a systemd credential"
  }
}
