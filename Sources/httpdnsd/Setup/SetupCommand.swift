// SetupCommand.swift -- `httpdnsd setup`: makes httpdnsd the machine's nameserver, and takes that back.

import ArgumentParser
import SystemSetup

/// The methods, and undoing them.
struct SetupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "setup",
    abstract: "Make httpdnsd the machine's nameserver, or undo that.",
    discussion: """
      Each method shows what it will change; with --apply it makes the changes. `undo` restores every octet. No file of \
      another program is edited: setup adds drop-ins to its folder. If a method replaces /etc/resolv.conf itself, setup \
      saves its content, mode and owner, or the link, for `undo`.

      Without a subcommand: `status`, which names the method for this machine.

      Example: httpdnsd setup resolved
      Example: sudo httpdnsd setup resolved --apply
      Example: sudo httpdnsd setup undo

      Exit code 0: done, or shown; 1: it cannot be done, or would not help; 64: a mistake on the command line.
      """,
    subcommands: [
      SetupStatusCommand.self, SetupResolvedCommand.self, SetupNetworkManagerCommand.self, SetupResolvconfCommand.self,
      SetupFileCommand.self, SetupUndoCommand.self, SetupPauseCommand.self, SetupResumeCommand.self,
      SetupRenewCommand.self,
    ],
    defaultSubcommand: SetupStatusCommand.self)
}

/// `setup resolved`.
struct SetupResolvedCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resolved",
    abstract: "Have systemd-resolved ask httpdnsd.",
    discussion: """
      systemd-resolved still serves 127.0.0.53, beside httpdnsd on 127.0.0.1, and asks httpdnsd for all names (DNS=, \
      Domains=~.) except those of a link's own domains, such as a VPN's. The service creates the drop-in below /run when \
      it is ready and removes it when it is stopped: without httpdnsd.service, systemd-resolved asks the links' servers.

      Example: httpdnsd setup resolved
      Example: sudo httpdnsd setup resolved --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.resolved) }
}

/// `setup networkmanager`.
struct SetupNetworkManagerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "networkmanager",
    abstract: "Put httpdnsd before NetworkManager's servers in /etc/resolv.conf.",
    discussion: """
      NetworkManager stops writing /etc/resolv.conf (dns=none), which becomes a link to a file with httpdnsd first and the \
      network's servers behind it; a dispatcher script renews that file whenever the network changes. While httpdnsd does \
      not run the C library asks the servers behind it. It does so too after httpdnsd has answered SERVFAIL.

      Example: sudo httpdnsd setup networkmanager --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.networkManager) }
}

/// `setup resolvconf`.
struct SetupResolvconfCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resolvconf",
    abstract: "Give resolvconf (Debian's, or openresolv) a record for httpdnsd.",
    discussion: """
      While httpdnsd.service runs, resolvconf has a record lo.httpdnsd and writes no other server than that loopback \
      address into /etc/resolv.conf. When the service is stopped, the record is removed and the network's servers return.

      Example: sudo httpdnsd setup resolvconf --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.resolvconf) }
}

/// `setup file`.
struct SetupFileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "file",
    abstract: "Put httpdnsd first in an /etc/resolv.conf that no program owns.",
    discussion: """
      The other lines stay, behind httpdnsd's. While httpdnsd does not run the C library asks the servers behind it. It \
      does so too after httpdnsd has answered SERVFAIL.

      Example: sudo httpdnsd setup file --apply --nameserver 127.0.0.1
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.file) }
}
