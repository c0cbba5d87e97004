// Diversion.swift -- finds out why programs do not ask httpdnsd although setup is applied, once a lookup has shown that.

/// Reasons on one machine.
public struct Diversion {
  private let method: SetupMethod
  private let host: String
  private let root: Root
  private let run: (SystemCommand) -> (status: Int32?, output: String)

  /// - Parameters:
  ///   - method: the method that was applied.
  ///   - nameserver: the address that programs should ask.
  ///   - run: runs a command and returns its exit code and its output.
  public init(
    _ method: SetupMethod, _ nameserver: Nameserver, root: Root,
    run: @escaping (SystemCommand) -> (status: Int32?, output: String) = { $0.run() }
  ) {
    (self.method, host, self.root, self.run) = (method, nameserver.host, root, run)
  }

  /// The most likely reason, in one sentence with what helps.
  public var reason: String {
    let found =
      switch method {
      case .resolved: resolved
      case .resolvconf: resolvconf
      case .networkManager, .file: listed ? nil : files
      }
    return found ?? lookupOrder
      ?? "the reason is unknown; `resolvectl query`, `getent ahosts` and /etc/nsswitch.conf may show it"
  }

  /// Another server that is asked beside httpdnsd, in one sentence with what helps; nil without such a server. A lookup
  /// does not show it: systemd-resolved asks both, and takes the answer that has data.
  public var rival: String? {
    guard method == .resolved else { return nil }
    for line in run(SystemCommand("resolvectl", "domain")).output.split(separator: "\n") where line.hasPrefix("Link") {
      guard line.split(whereSeparator: \.isWhitespace).contains("~.") else { continue }
      let name = line.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" }
      return "the link \(name) takes all names too (domain ~., as VPNs set it), so systemd-resolved asks its servers: "
        + "`resolvectl domain \(name) ''` ends that"
    }
    return nil
  }

  private var resolved: String? {
    let unit = "systemd-resolved.service"
    if !root.exists(SetupPaths.resolvedDropIn) { return unengaged }
    if (try? Manager.find(in: root)) != .known(.resolved) { return files }
    if run(SystemCommand("systemctl", "is-active", "--quiet", unit)).status != 0 {
      let isMasked = run(SystemCommand("systemctl", "is-enabled", unit)).output.hasPrefix("masked")
      let help = isMasked ? "`systemctl unmask systemd-resolved`, then " : ""
      return
        "systemd-resolved does not run\(isMasked ? ", it is masked" : ""): \(help)`systemctl start systemd-resolved`"
    }
    let settings = ResolvedSettings(root, hasOurs: true)
    guard settings.place(of: "DNS", with: host) != nil || settings.place(of: "DNS", with: "\(host):53") != nil else {
      return "a later file than \(SetupPaths.resolvedDropIn) resets DNS= of systemd-resolved: "
        + "`systemd-analyze cat-config systemd/resolved.conf` shows it"
    }
    return rival
  }

  private var resolvconf: String? {
    guard ResolvconfKind.recordFolders.contains(where: { root.exists("\($0)/\(SetupPaths.record)") }) else {
      return unengaged
    }
    if listed { return nil }
    if (try? Manager.find(in: root)) != .known(.resolvconf) { return files }
    if let name = root.names(in: "/run/resolvconf/exclusive").first {
      let record = name.split(separator: " ").last ?? ""
      return "resolvconf's record \(record) is exclusive (`resolvconf -x`, as VPNs set it), so it hides httpdnsd's"
    }
    if root.exists("/lib/resolvconf/list-records"), !root.exists("/run/resolvconf/enable-updates") {
      return "resolvconf's updates are disabled: `resolvconf --enable-updates`"
    }
    return "resolvconf lists \(servers) first: /etc/resolvconf/interface-order or /etc/resolvconf.conf says so"
  }

  private var unengaged: String {
    "httpdnsd.service has not taken over: `systemctl start httpdnsd`, or `httpdnsd setup resume` after `pause`"
  }

  /// What programs read instead.
  private var files: String {
    let advice = "`httpdnsd setup undo`, then `httpdnsd setup` for the method that fits now"
    guard !servers.isEmpty else { return "/etc/resolv.conf lists no nameserver: \(advice)" }
    let owner =
      switch try? Manager.find(in: root) {
      case .known(let method) where method != .file: " and is \(method.owner)'s"
      case .other(let owner, _): " and is \(owner)"
      default: ""
      }
    return "/etc/resolv.conf lists \(servers)\(owner): \(advice)"
  }

  private var servers: String {
    ResolverText.servers(of: root.text(of: SetupPaths.resolver) ?? "").joined(separator: ", ")
  }

  /// Whether the C library asks httpdnsd first.
  private var listed: Bool { ResolverText.servers(of: root.text(of: SetupPaths.resolver) ?? "").first == host }

  private var lookupOrder: String? {
    let lines = (root.text(of: "/etc/nsswitch.conf") ?? "").split(separator: "\n")
    guard let line = lines.first(where: { $0.hasPrefix("hosts:") }) else { return nil }
    let words = line.split(whereSeparator: \.isWhitespace)
    guard !words.contains("dns"), !words.contains("resolve") else { return nil }
    return "/etc/nsswitch.conf: `\(line)` asks no nameserver: add `dns`"
  }
}
