// Following.swift -- the files that follow the network: hooks of NetworkManager and resolvconf rewrite them.

/// The text of those files.
enum Following {
  /// The servers that the network has handed out, whatever NetworkManager does with /etc/resolv.conf.
  static let networkManagerFile = "/run/NetworkManager/no-stub-resolv.conf"

  /// What /etc/resolv.conf shall lead to: our nameserver, and NetworkManager's servers and search domains behind it.
  static func resolver(_ nameserver: Nameserver, _ servers: String) -> String {
    let lines = servers.split(separator: "\n").filter { !$0.hasPrefix("#") && !$0.hasPrefix(";") }
    return ResolverText.first(nameserver, in: lines.joined(separator: "\n"))
  }

  /// The servers and search domains of all of resolvconf's records but those of loopback, which are servers like ours.
  static func network(_ root: Root) -> String {
    var lines = ["# resolvconf's servers, for httpdnsd; `httpdnsd setup undo` removes this."]
    for folder in ResolvconfKind.recordFolders {
      for name in root.names(in: folder) where name != "lo" && !name.hasPrefix("lo.") {
        for line in (root.text(of: "\(folder)/\(name)") ?? "").split(separator: "\n") {
          let isWanted = ["nameserver", "search", "domain"].contains(line.split(whereSeparator: \.isWhitespace).first)
          if isWanted, !lines.contains(String(line)) { lines.append(String(line)) }
        }
      }
    }
    return lines.joined(separator: "\n") + "\n"
  }
}

/// The two programs of the name resolvconf.
struct ResolvconfKind {
  /// Where a program is put that is run with every change.
  let hook: String

  /// Where the records are: Debian's resolvconf, openresolv.
  static let recordFolders = ["/run/resolvconf/interface", "/run/resolvconf/interfaces"]

  /// The one that is installed; systemd's resolvconf is only another name of resolvectl.
  static func find(_ root: Root) -> ResolvconfKind? {
    guard let program = SystemCommand.find("resolvconf", in: root),
      !root.destination(of: program).hasSuffix("resolvectl")
    else { return nil }
    if root.exists("/lib/resolvconf/list-records") {
      return ResolvconfKind(hook: "/etc/resolvconf/update.d/httpdnsd")
    }
    let folders = ["/usr/lib/resolvconf", "/usr/libexec/resolvconf", "/lib/resolvconf", "/libexec/resolvconf"]
    return folders.first { root.exists("\($0)/libc") }.map { ResolvconfKind(hook: "\($0)/httpdnsd") }
  }
}
