// ResolvconfKind.swift -- finds the installed resolvconf and the path of its hooks.

/// One of the two programs named resolvconf.
struct ResolvconfKind {
  /// The path of the hook that it runs on every change.
  let hook: String

  /// The record folders of Debian's resolvconf, of openresolv until version 3.13, and of later ones.
  static let recordFolders = ["interface", "interfaces", "keys"].map { "/run/resolvconf/\($0)" }

  /// Finds the installed one. systemd's resolvconf does not count: it is a link to resolvectl.
  static func find(_ root: Root) -> ResolvconfKind? {
    guard let program = SystemCommand.find("resolvconf", in: root),
      !root.destination(of: program).hasSuffix("resolvectl")
    else { return nil }
    if root.exists("/lib/resolvconf/list-records") { return ResolvconfKind(hook: hooks[0]) }
    return folders.first { root.exists("\($0)/libc") }.map { ResolvconfKind(hook: "\($0)/httpdnsd") }
  }

  /// The folders in which openresolv may have its subscribers.
  private static let folders = ["/usr/lib", "/usr/libexec", "/lib", "/libexec"].map { "\($0)/resolvconf" }

  /// The paths that the hook may have; the first one with Debian's resolvconf.
  static let hooks = ["/etc/resolvconf/update.d/httpdnsd"] + folders.map { "\($0)/httpdnsd" }
}
