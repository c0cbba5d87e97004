// UserAccount.swift -- a user of this machine: its name, its ids, and the advice if it cannot read a secret.
//
// Users are looked up in /etc/passwd only: a directory service might resolve the name of its server through this daemon.

import Glibc

/// A user of this machine.
public struct UserAccount: Equatable, Sendable {
  /// The login name.
  public let name: String
  /// The user id.
  public let user: uid_t
  /// The id of the primary group.
  public let group: gid_t

  /// The ids that systemd assigns with DynamicUser=. Such a user exists only while its service runs.
  static let passing: ClosedRange<uid_t> = 61_184...65_519
  /// The UIDs of people (login.defs(5)).
  static let people: ClosedRange<uid_t> = 1_000...59_999

  /// The user of that name; nil if there is no such user. Reads the file.
  ///
  /// - Parameter file: a file in the format of passwd(5).
  public init?(_ name: String, in file: String = "/etc/passwd") {
    self.init(in: file) { $0.name == name }
  }

  /// The user with that id; nil if there is no such user.
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

  private init(name: String, user: uid_t, group: gid_t) { (self.name, self.user, self.group) = (name, user, group) }
}

/// Words for messages about a user that reads files.
struct Reader {
  /// `root`, `user httpdnsd`, or `user 65532` if it has no name.
  let user: String
  /// How to make a secret readable for this user, as the object of "expected".
  private(set) var secretRemedy: String

  /// The user of this process.
  static var ours: Reader { .withCommand(geteuid(), UserAccount(number: geteuid())?.name) }

  /// The user of a command, who may look at what the service reads.
  static func withCommand(_ number: uid_t, _ name: String?) -> Reader {
    var reader = Reader(number, name)
    if UserAccount.people.contains(number) { reader.secretRemedy += "; if it is the service's, run this with sudo" }
    return reader
  }

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
