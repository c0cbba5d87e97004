// ServiceReader.swift -- reads files as the service's user, so that root sees which files the service may not read.

import Configuration
import Glibc
import SystemSetup

/// The user of httpdnsd.service, as which root reads files for a while.
///
/// All threads change their user, so the program must not do anything else meanwhile.
struct ServiceReader {
  /// What the user is called.
  var name: String { account.name }

  private let account: UserAccount
  private var groups: [gid_t]

  /// Nil where this is not root, or where the service reads another configuration or has no user that stays.
  init?(of configuration: String) {
    let unit = ServiceUnit(Root())
    guard geteuid() == 0, let named = unit.configuration, FilePath.isSame(named, configuration),
      let user = unit.user, uid_t(user) == nil
    else { return nil }
    guard let account = UserAccount(user) else {
      let remedy = "`systemd-sysusers` creates it"
      Console.error("warning: httpdnsd.service: no user \(user), so it does not start; \(remedy)")
      return nil
    }
    self.account = account
    let count = getgroups(0, nil)
    groups = [gid_t](repeating: 0, count: Int(max(count, 0)))
    guard count >= 0, getgroups(count, &groups) == count else { return nil }
  }

  /// From now on files are opened as the service would open them; false where that is not allowed.
  func begin() -> Bool {
    if setgroups(1, [account.group]) == 0 && setegid(account.group) == 0 && seteuid(account.user) == 0 { return true }
    end()
    Console.error("warning: files are read as root: not allowed to become user \(name)")
    return false
  }

  /// As before.
  func end() {
    _ = seteuid(0)
    _ = setegid(getgid())
    _ = setgroups(groups.count, groups)
  }
}
