// DispatcherUnit.swift -- whether NetworkManager can run our script when the network changes.

/// NetworkManager-dispatcher.service, which D-Bus starts by an alias.
public enum DispatcherUnit {
  private static let name = "NetworkManager-dispatcher.service"
  private static let names = [name, "dbus-org.freedesktop.nm-dispatcher.service"]

  /// Why it does not run, and what to do; nil if it does, or is not installed.
  public static func obstacle(in root: Root) -> String? {
    let folders = ServiceUnit.folders
    let isInstalled = folders.contains { root.exists("\($0)/\(name)") }
    let isMasked = names.contains { name in
      folders.prefix(2).contains { root.destination(of: "\($0)/\(name)") == "/dev/null" }
    }
    // Without the alias, D-Bus does not find it.
    let isDisabled = isInstalled && !folders.contains { root.exists("\($0)/\(names[1])") }
    guard isMasked || isDisabled else { return nil }
    return "\(name) is \(isMasked ? "masked" : "disabled"), so the servers after httpdnsd in /etc/resolv.conf do not "
      + "follow the network: `systemctl \(isMasked ? "unmask" : "enable") \(name)`"
  }
}
