// FollowingFiles.swift -- composes the files that follow the network; hooks of NetworkManager and resolvconf rewrite them.

/// Composes the text of these files.
enum FollowingFiles {
  /// The network's servers; NetworkManager writes this file whether or not it manages /etc/resolv.conf.
  static let networkManagerFile = "/run/NetworkManager/no-stub-resolv.conf"

  /// /etc/resolv.conf: our nameserver first, then NetworkManager's servers and search domains.
  static func resolver(_ nameserver: Nameserver, _ servers: String) -> String {
    let lines = servers.split(separator: "\n").filter { !$0.hasPrefix("#") && !$0.hasPrefix(";") }
    return ResolverText.first(nameserver, in: lines.joined(separator: "\n"))
  }

  /// The servers and search domains of all resolvconf records except those of loopback, which are local servers.
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
