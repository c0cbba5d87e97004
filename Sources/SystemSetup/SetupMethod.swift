// SetupMethod.swift -- the ways to make httpdnsd the machine's nameserver, and its address there.

/// A way to set the machine's nameserver, by the program that manages it.
public enum SetupMethod: String, CaseIterable, Sendable {
  /// systemd-resolved.
  case resolved
  /// NetworkManager, if it writes /etc/resolv.conf itself.
  case networkManager = "networkmanager"
  /// Debian's resolvconf, or openresolv.
  case resolvconf
  /// A plain /etc/resolv.conf that no program manages.
  case file

  /// The human-readable name of the program that manages /etc/resolv.conf.
  public var owner: String {
    switch self {
    case .resolved: "systemd-resolved"
    case .networkManager: "NetworkManager"
    case .resolvconf: "resolvconf"
    case .file: "no known program"
    }
  }
}

/// The address at which the machine's programs ask httpdnsd.
public struct Nameserver: Hashable, Sendable {
  /// The IP address as text, without brackets.
  public let host: String
  /// The port; only systemd-resolved can ask a port other than 53.
  public let port: UInt16

  /// Checks nothing.
  public init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

  /// The address in the syntax of `DNS=` in resolved.conf(5).
  var resolvedText: String {
    guard port != Nameserver.standardPort else { return host }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// The port that resolv.conf(5) implies.
  public static let standardPort: UInt16 = 53
}

/// The paths that setup uses, absolute inside the root.
enum SetupPaths {
  /// The state folder: what undo needs, and files that hooks rewrite. It outlives the service, and is not the service's
  /// StateDirectory, which belongs to another user.
  static let state = "/var/lib/httpdnsd-setup"
  static let journal = "\(state)/journal"
  /// The file to which earlier versions have linked /etc/resolv.conf, with NetworkManager.
  static let following = "\(state)/resolv.conf"
  /// The network's resolvers from resolvconf's records, for the daemon.
  static let network = "\(state)/network.conf"
  static let resolver = "/etc/resolv.conf"
  static let unitFolder = "/etc/systemd/system/httpdnsd.service.d"
  static let unitDropIn = "\(unitFolder)/nameserver.conf"
  static let resolvedDropIn = "/run/systemd/resolved.conf.d/httpdnsd.conf"
  /// Holds the time at which the service became ready.
  static let readyMark = "/run/httpdnsd-setup/ready"
  static let networkManagerDropIn = "/etc/NetworkManager/conf.d/90-httpdnsd.conf"
  static let networkManagerHook = "/etc/NetworkManager/dispatcher.d/90-httpdnsd"
  /// The scripts that other programs run, each in a folder of such scripts.
  static let hooks = [networkManagerHook] + ResolvconfKind.hooks
  /// What `mark` shows to be made by setup, or by the service.
  static let made = [unitDropIn, resolvedDropIn, networkManagerDropIn, network] + hooks
  /// In the comment of each of these files.
  static let mark = "`httpdnsd setup undo`"
  static let unit = "httpdnsd.service"
  static let socket = "httpdnsd.socket"
  /// The name of our resolvconf record; resolvconf's default order puts loopback first.
  static let record = "lo.httpdnsd"
}
