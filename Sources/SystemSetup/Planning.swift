// Planning.swift -- makes the plan of a method for a machine, or explains why the method does not fit.

extension Plan {
  /// Decides what a method will change.
  ///
  /// - Parameters:
  ///   - program: the path of the installed httpdnsd, which hooks run.
  ///   - wildcard: httpdnsd's listening address that also covers 127.0.0.53, as text; nil without such an address.
  /// - Throws: `SetupError.refused` if the method does not fit the machine, with the one that does.
  public static func make(
    _ method: SetupMethod, _ nameserver: Nameserver, program: String, wildcard: String? = nil, root: Root
  ) throws(SetupError) -> Plan {
    guard program.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
      throw .refused("httpdnsd's path has a control character: install it elsewhere, or pass --program")
    }
    var plan = Plan(method, nameserver, program: program)
    if method != .resolved, nameserver.port != Nameserver.standardPort {
      throw .refused(
        """
        resolv.conf has no ports: httpdnsd has to listen on port 53, not on \(nameserver.port) (listen.addresses); \
        only systemd-resolved can ask another port
        """)
    }
    switch method {
    case .resolved: try plan.planResolved(root, wildcard: wildcard)
    case .networkManager: try plan.planNetworkManager(root)
    case .resolvconf: try plan.planResolvconf(root)
    case .file: try plan.planFile(root)
    }
    if method != .file, !root.exists(program) {
      plan.doubts.append(
        "\(root.folder)\(program), which hooks would start, is missing: pass httpdnsd's path with --program")
    }
    let unit = ServiceUnit(root)
    if unit.isPresent, !unit.isEnabled {
      plan.notes.append(
        "\(SetupPaths.unit) is not enabled: after the next boot, names go to httpdnsd only once it is started "
          + "(`systemctl enable httpdnsd`)")
    }
    return plan
  }

  /// Adds the drop-in that makes the machine ask httpdnsd while its service runs, and as before when it stops.
  mutating func addServiceHooks(_ root: Root) throws(SetupError) {
    guard ServiceUnit(root).isPresent else {
      throw .refused(
        """
        \(SetupPaths.unit) does not exist: with this method, names go to httpdnsd only while its service runs (README, \
        Install)
        """)
    }
    let program = Quoting.shell(program)
    let resume = Quoting.unit("exec \(program) setup resume --service")
    let pause = Quoting.unit("\(program) setup pause --service || \(Engagement.lastResort(method))")
    let text = """
      # Made by `httpdnsd setup \(method.rawValue)`; `httpdnsd setup undo` removes it.
      # While the service runs, the machine's names go to httpdnsd; a failure here never stops the service.
      [Service]
      ExecStartPost=+-/bin/sh -c \(resume)
      # Also without the program, if it was deleted or lacks a library.
      ExecStopPost=+-/bin/sh -c \(pause)

      """
    try add(SetupPaths.unitDropIn, .text(text), in: root)
    commands.append(SystemCommand("systemctl", "daemon-reload"))
  }

  // MARK: resolved

  private mutating func planResolved(_ root: Root, wildcard: String?) throws(SetupError) {
    guard root.exists("/usr/lib/systemd/systemd-resolved") || root.exists("/lib/systemd/systemd-resolved") else {
      throw .refused("systemd-resolved is not installed (Debian: apt install systemd-resolved)")
    }
    try addServiceHooks(root)
    notes.append(
      """
      while httpdnsd runs, \(SetupPaths.resolvedDropIn) contains:
      \(Engagement.resolvedDropIn(nameserver).split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))
      """)
    if try Manager.find(in: root) != .known(.resolved) {
      notes.append(
        """
        /etc/resolv.conf is not systemd-resolved's: programs that read it ask neither systemd-resolved nor httpdnsd \
        (Debian's package runs `ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf`)
        """)
    }
    let settings = ResolvedSettings(root)
    if let file = settings.place(of: "DNSOverTLS", notIn: ResolvedSettings.no + ["opportunistic"]) {
      doubts.append("\(file): DNSOverTLS= makes systemd-resolved ask only over TLS, which httpdnsd does not support")
    }
    if let file = settings.place(of: "DNSStubListenerExtra", with: nameserver.host) {
      doubts.append(
        "\(file): DNSStubListenerExtra=\(nameserver.host) makes systemd-resolved listen there itself; remove that line"
      )
    }
    if let wildcard, !settings.has("DNSStubListener", oneOf: ResolvedSettings.no) {
      doubts.append(
        """
        \(wildcard), where httpdnsd listens, takes port 53 of systemd-resolved's 127.0.0.53 too, and whichever of the \
        two starts last does not get the port: httpdnsd does not start, or programs that ask 127.0.0.53 get httpdnsd's \
        answers, even in the links' own domains; list 127.0.0.1:53 and this machine's other addresses one by one
        """)
    }
    if let file = settings.place(of: "DNSSEC", notIn: ResolvedSettings.no + ["allow-downgrade"]) {
      notes.append(
        "\(file): DNSSEC= is on; signed names fail if httpdnsd's provider returns no signatures (kind doh does)")
    }
    if let file = settings.place(of: "DNS", notIn: [""]) {
      notes.append(
        "\(file) also sets servers for all names (DNS=); systemd-resolved may ask those instead of httpdnsd")
    }
  }

  // MARK: NetworkManager

  private mutating func planNetworkManager(_ root: Root) throws(SetupError) {
    guard root.exists("/usr/sbin/NetworkManager") || root.exists("/usr/bin/NetworkManager") else {
      throw .refused("NetworkManager is not installed")
    }
    switch try Manager.find(in: root) {
    case .known(.networkManager), .known(.file): break
    case .known(let method):
      throw .refused(
        """
        /etc/resolv.conf belongs to \(method.rawValue), which gets its servers from NetworkManager: \
        `httpdnsd setup \(method.rawValue)`
        """)
    case .other(let owner, let help): throw .refused("/etc/resolv.conf is \(owner): \(help)")
    }
    if let obstacle = DispatcherUnit.obstacle(in: root) { doubts.append(obstacle) }
    let isMounted = root.isMountPoint(SetupPaths.resolver)
    if isMounted { throw .refused("/etc/resolv.conf is a mount point, so NetworkManager does not manage it") }
    let servers = root.text(of: FollowingFiles.networkManagerFile) ?? root.text(of: SetupPaths.resolver) ?? ""
    let temporary = FileWriter.temporary(of: SetupPaths.resolver)
    try add(
      SetupPaths.networkManagerDropIn,
      .text(
        """
        # Made by `httpdnsd setup networkmanager`; `httpdnsd setup undo` removes it.
        # NetworkManager still writes /run/NetworkManager/no-stub-resolv.conf.
        [main]
        dns=none

        """), in: root)
    try add(
      SetupPaths.networkManagerHook,
      .text(
        """
        #!/bin/sh
        # Made by `httpdnsd setup networkmanager`; `httpdnsd setup undo` removes it.
        # The network may have other servers now: lists them in /etc/resolv.conf, after httpdnsd.
        \(Quoting.shell(program)) setup renew --quiet
        status=$?
        case $status in 1 | 126 | 127) ;; *) exit $status ;; esac
        # The program fails or is gone: lists the network's servers alone, if the file is still httpdnsd's.
        read -r line < /etc/resolv.conf
        [ "$line" = '\(ResolverText.comment)' ] || exit 0
        grep -q '^nameserver' \(FollowingFiles.networkManagerFile) || exit 0
        umask 022
        { echo "$line" && cat \(FollowingFiles.networkManagerFile); } > \(temporary) && mv \(temporary) /etc/resolv.conf \
          || rm -f \(temporary)

        """, mode: 0o755), in: root)
    // A file, not a link: a container and a confined program may be unable to follow a link to a folder of ours.
    try add(SetupPaths.resolver, .text(FollowingFiles.resolver(nameserver, servers)), .ours, in: root)
    commands.append(SystemCommand("nmcli", "general", "reload"))
  }

  // MARK: resolvconf

  private mutating func planResolvconf(_ root: Root) throws(SetupError) {
    guard let hook = ResolvconfKind.find(root)?.hook else {
      throw .refused("neither Debian's resolvconf nor openresolv is installed")
    }
    if try Manager.find(in: root) != .known(.resolvconf) {
      notes.append("/etc/resolv.conf is not resolvconf's: programs that read it do not ask httpdnsd")
    }
    let program = Quoting.shell(program)
    try add(SetupPaths.network, .text(FollowingFiles.network(root)), .ours, in: root)
    try add(
      hook,
      .text(
        """
        #!/bin/sh
        # Made by `httpdnsd setup resolvconf`; `httpdnsd setup undo` removes it.
        # The network may have other servers now: lists them in \(SetupPaths.network) for httpdnsd.
        # resolvconf goes on if the program is gone, lacks a library, or fails.
        [ ! -x \(program) ] || \(program) setup renew --quiet || :

        """, mode: 0o755), in: root)
    try addServiceHooks(root)
    let record = SystemCommand("resolvconf", "-a", SetupPaths.record, input: Engagement.record(nameserver))
    notes.append("while httpdnsd runs, resolvconf has its record: \(record)")
  }

  // MARK: a file

  private mutating func planFile(_ root: Root) throws(SetupError) {
    switch try Manager.find(in: root) {
    case .known(.file): break
    case .known(let method):
      throw .refused("/etc/resolv.conf belongs to \(method.rawValue): `httpdnsd setup \(method.rawValue)`")
    case .other(let owner, let help): throw .refused("/etc/resolv.conf is \(owner): \(help)")
    }
    let before = try root.state(of: SetupPaths.resolver)
    let text = before.text ?? ""
    var attributes = FileAttributes(mode: 0o644)
    if case .file(_, let present) = before { attributes = present }
    attributes.modified = nil
    let after = FileState.file(Array(ResolverText.first(nameserver, in: text).utf8), attributes)
    let isMounted = root.isMountPoint(SetupPaths.resolver)
    try add(SetupPaths.resolver, after, isMounted ? .overwrite : .replace, in: root)
    let others = ResolverText.servers(of: text).filter { $0 != nameserver.host }
    if others.isEmpty {
      notes.append(
        "/etc/resolv.conf lists no other nameserver: without httpdnsd, no name is resolved (see also localdns.servers)")
    }
    if others.count >= ResolverText.mostServers {
      notes.append("the C library asks \(ResolverText.mostServers) servers at most; the last one is no longer asked")
    }
    if isMounted { notes.append("/etc/resolv.conf is a mount point (of a container?): its owner may overwrite it") }
    for client in ["dhclient", "udhcpc", "dhcpcd"] where SystemCommand.find(client, in: root) != nil {
      let help = client == "dhclient" ? ": \(Manager.helpForDhclient)" : ""
      notes.append("\(client) is installed and may overwrite /etc/resolv.conf with its next lease\(help)")
    }
  }
}
