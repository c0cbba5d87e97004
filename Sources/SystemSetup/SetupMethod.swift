// SetupMethod.swift -- the ways of making httpdnsd the machine's nameserver, and the address that it has there.

/// Whose files say which nameserver the machine asks.
public enum SetupMethod: String, CaseIterable, Sendable {
  /// systemd-resolved.
  case resolved
  /// NetworkManager, where it writes /etc/resolv.conf itself.
  case networkManager = "networkmanager"
  /// Debian's resolvconf, or openresolv.
  case resolvconf
  /// A plain /etc/resolv.conf that belongs to nobody.
  case file

  /// Whose /etc/resolv.conf is, in words for a person.
  public var owner: String {
    switch self {
    case .resolved: "systemd-resolved"
    case .networkManager: "NetworkManager"
    case .resolvconf: "resolvconf"
    case .file: "nobody"
    }
  }
}

/// The address at which the machine's programs ask httpdnsd.
public struct Nameserver: Hashable, Sendable {
  /// The address in text, without brackets.
  public let host: String
  /// The port; everything but systemd-resolved can only ask port 53.
  public let port: UInt16

  /// An address as it stands.
  public init(host: String, port: UInt16) { (self.host, self.port) = (host, port) }

  /// As `DNS=` of resolved.conf(5) takes it.
  var resolvedText: String {
    guard port != Nameserver.standardPort else { return host }
    return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// The port that a resolv.conf(5) means.
  public static let standardPort: UInt16 = 53
}

/// Where things are, as absolute paths inside the root.
enum Place {
  /// What must outlive the program and its service: what undo needs, and files that are rewritten at times. No
  /// StateDirectory of the service, which another user owns.
  static let state = "/var/lib/httpdnsd-setup"
  static let journal = "\(state)/journal"
  /// NetworkManager's servers behind ours; /etc/resolv.conf leads here.
  static let following = "\(state)/resolv.conf"
  /// The network's resolvers that resolvconf knows of, for the daemon.
  static let network = "\(state)/network.conf"
  static let resolver = "/etc/resolv.conf"
  static let unitFolder = "/etc/systemd/system/httpdnsd.service.d"
  static let unitDropIn = "\(unitFolder)/nameserver.conf"
  static let resolvedDropIn = "/run/systemd/resolved.conf.d/httpdnsd.conf"
  /// Since when the service has been ready.
  static let readyMark = "/run/httpdnsd-setup/ready"
  static let unit = "httpdnsd.service"
  static let socket = "httpdnsd.socket"
  /// resolvconf's name of our record; the standard orders have loopback first.
  static let record = "lo.httpdnsd"
}
