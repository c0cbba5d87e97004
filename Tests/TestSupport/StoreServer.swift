// StoreServer.swift -- the servers that the tests use as a real store.

import Glibc

/// A server that a daemon can share answers through.
public enum StoreServer: String, CaseIterable, Sendable {
  case redis, valkey

  /// The server's file. Debian's packages of tools have the server under another name, by which it is another program; the
  /// packages with the server would start it as a service.
  private var file: String {
    switch self {
    case .redis: "/usr/bin/redis-check-rdb"
    case .valkey:
      access(StoreServer.packagedValkey, X_OK) == 0 ? StoreServer.packagedValkey : StoreServer.unpackedValkey
    }
  }

  private static let packagedValkey = "/usr/bin/valkey-check-rdb"
  /// What `Scripts/test-valkey` makes on a Debian without the package.
  private static let unpackedValkey =
    #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" } + "/.build/test-valkey/valkey-server"

  /// Those that the machine has: tests with a real store run with each.
  public static let installed = allCases.filter { access($0.file, X_OK) == 0 }

  /// Names those that the machine does not have, and says what installs them; empty where it has all.
  public static var absence: String {
    allCases.filter { !installed.contains($0) }.map {
      switch $0 {
      case .redis: "no Redis: Scripts/install-packages installs it"
      case .valkey: "no Valkey: Scripts/test-valkey fetches it"
      }
    }.joined(separator: "; ")
  }

  /// Makes a link in a folder by which the server's file is the server, unless it is there already, and gives its path.
  public func program(in folder: String) -> String {
    let link = "\(folder)/\(rawValue)-server"
    symlink(file, link)
    return link
  }
}
