// SetupCommand.swift -- `httpdnsd setup`: makes httpdnsd the machine's nameserver, and undoes that.

import ArgumentParser
import SystemSetup

struct SetupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "setup",
    abstract: "Make httpdnsd the machine's nameserver, or undo that.",
    discussion: """
      Each method shows what it would change; with --apply it makes the changes. `undo` restores every octet. Setup \
      does not edit files of other programs; it adds drop-ins. If a method replaces /etc/resolv.conf, setup saves the \
      file's content, mode and owner, or the link, for `undo`.

      Without a subcommand, `status` is run, which names the method for this machine.

      Example: httpdnsd setup resolved
      Example: sudo httpdnsd setup resolved --apply
      Example: sudo httpdnsd setup undo

      Exit code 0: done, or shown; 1: it is not possible, or would have no effect; 64: a mistake on the command line.
      """,
    subcommands: [
      SetupStatusCommand.self, SetupResolvedCommand.self, SetupNetworkManagerCommand.self, SetupResolvconfCommand.self,
      SetupFileCommand.self, SetupUndoCommand.self, SetupPauseCommand.self, SetupResumeCommand.self,
      SetupRenewCommand.self,
    ],
    defaultSubcommand: SetupStatusCommand.self)
}

struct SetupResolvedCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resolved",
    abstract: "Have systemd-resolved ask httpdnsd.",
    discussion: """
      systemd-resolved keeps serving 127.0.0.53, and httpdnsd serves 127.0.0.1. systemd-resolved asks httpdnsd for all \
      names (DNS=, Domains=~.) except those in a link's own domains, such as a VPN's. The service creates the drop-in \
      below /run when it is ready and removes it when it stops: without httpdnsd.service, systemd-resolved asks the \
      links' servers.

      Example: httpdnsd setup resolved
      Example: sudo httpdnsd setup resolved --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.resolved) }
}

struct SetupNetworkManagerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "networkmanager",
    abstract: "Put httpdnsd before NetworkManager's servers in /etc/resolv.conf.",
    discussion: """
      NetworkManager stops writing /etc/resolv.conf (dns=none), which then lists httpdnsd before the network's servers; a \
      dispatcher script rewrites it whenever the network changes. While httpdnsd is not running, and after it has \
      answered SERVFAIL, the C library asks the network's servers.

      Example: sudo httpdnsd setup networkmanager --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.networkManager) }
}

struct SetupResolvconfCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resolvconf",
    abstract: "Give resolvconf (Debian's, or openresolv) a record for httpdnsd.",
    discussion: """
      While httpdnsd.service runs, resolvconf has a record lo.httpdnsd and writes only that loopback address into \
      /etc/resolv.conf. When the service stops, the record is removed and the network's servers return.

      Example: sudo httpdnsd setup resolvconf --apply
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.resolvconf) }
}

struct SetupFileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "file",
    abstract: "Put httpdnsd first in an /etc/resolv.conf that no program owns.",
    discussion: """
      The other lines stay, after httpdnsd's. While httpdnsd is not running, and after it has answered SERVFAIL, the C \
      library asks the other servers.

      Example: sudo httpdnsd setup file --apply --nameserver 127.0.0.1
      """)

  @OptionGroup var options: SetupOptions

  func run() throws { try options.run(.file) }
}
