// ServiceReader.swift -- reads files as the service's user, so that root sees which files the service may not read.

import Configuration
import Glibc
import SystemSetup

/// Lets root temporarily read files as the user of httpdnsd.service.
///
/// The change affects all threads, so the program must not do anything else meanwhile.
struct ServiceReader {
  var name: String { account.name }

  /// Whether the service may change firewall sets.
  let mayChangeSets: Bool
  private let account: UserAccount
  private var groups: [gid_t]

  /// Nil if this process is not root, or if the service reads another configuration or has no static user.
  init?(of configuration: String) {
    let unit = ServiceUnit(Root())
    guard geteuid() == 0, unit.reads(configuration),
      let user = unit.user, uid_t(user) == nil
    else { return nil }
    guard let account = UserAccount(user) else {
      let remedy = "`systemd-sysusers` creates it"
      Console.error("warning: httpdnsd.service: user \(user) does not exist, so the service cannot start; \(remedy)")
      return nil
    }
    self.account = account
    mayChangeSets = unit.grants("CAP_NET_ADMIN", toRoot: account.user == 0)
    let count = getgroups(0, nil)
    groups = [gid_t](repeating: 0, count: Int(max(count, 0)))
    guard count >= 0, getgroups(count, &groups) == count else { return nil }
  }

  /// Switches to the service's user until `end`; returns false if that is not permitted.
  func begin() -> Bool {
    if setgroups(1, [account.group]) == 0 && setegid(account.group) == 0 && seteuid(account.user) == 0 { return true }
    end()
    Console.error("warning: files are read as root: cannot switch to user \(name)")
    return false
  }

  /// Switches back to root.
  func end() {
    _ = seteuid(0)
    _ = setegid(getgid())
    _ = setgroups(groups.count, groups)
  }
}
