// ProviderSet.swift -- the providers of a running program: from one configuration to the next, what is unchanged stays.
//
// Resolver's loop only.

import Configuration
import Glibc
import HTTPClient

/// Why a provider cannot be set up.
package struct ProviderSetupError: Error, CustomStringConvertible {
  /// Its name in the configuration.
  var provider: String
  /// What is wrong with its settings or with this machine.
  var reason: HTTPSetupError

  /// One line.
  package var description: String { "provider \(provider): \(reason.description)" }
}

/// The providers of a configuration, in its order.
package struct ProviderSet {
  private struct Member {
    var settings: Configuration.Provider
    /// Where a server is found by its name; nil where none needs to be.
    var resolvers: [Configuration.LocalServer]?
    /// Which content `ca_file` had.
    var certificates: FileStamp?

    func isSame(as other: Member) -> Bool {
      settings == other.settings && resolvers == other.resolvers && certificates == other.certificates
    }
  }

  /// When a file was written, and how long it is: it is read again where one of them is another.
  private struct FileStamp: Equatable {
    var seconds: Int
    var nanoseconds: Int
    var size: Int

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      (seconds, nanoseconds, size) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec, Int(status.st_size))
    }
  }

  private var members: [(made: Member, upstream: any Upstream)] = []

  /// No providers.
  package init() {}

  /// What the resolver asks.
  package var upstreams: [any Upstream] { members.map(\.upstream) }

  /// The providers of another configuration. One whose settings are the same stays as it is, with its connections, its
  /// health and what it remembers; the others are made.
  ///
  /// - Throws: `ProviderSetupError` where one cannot be made; nothing has changed then.
  package func following(
    _ configuration: Configuration, _ factory: ProviderFactory
  ) throws(ProviderSetupError) -> ProviderSet {
    var next = ProviderSet()
    for settings in configuration.providers {
      let wanted = Member(
        settings: settings, resolvers: settings.looksUpServers ? configuration.localDNS.servers : nil,
        certificates: settings.caFile.flatMap { FileStamp($0) })
      if let known = members.first(where: { $0.made.isSame(as: wanted) }) {
        next.members.append(known)
        continue
      }
      do throws(HTTPSetupError) {
        next.members.append((wanted, try factory.make(settings)))
      } catch { throw ProviderSetupError(provider: settings.name, reason: error) }
    }
    return next
  }

  /// Takes leave of those that are not in the next set, and hands over what counts under the same name.
  package func retire(for next: ProviderSet) {
    for member in members where !next.members.contains(where: { $0.upstream === member.upstream }) {
      let heir = next.members.first { $0.made.settings.name == member.made.settings.name }?.upstream
      if let heir = heir as? any CountingUpstream, let upstream = member.upstream as? any CountingUpstream {
        heir.counters = upstream.counters
      }
      member.upstream.retire(for: heir)
    }
  }
}

extension Configuration.Provider {
  /// Whether LocalDNS is asked for the address of one of its servers.
  fileprivate var looksUpServers: Bool {
    guard bootstrap.isEmpty else { return false }
    switch service {
    // A list of servers may bring names.
    case .emas, .alidns(_, _, isScheduled: true): return true
    default: return servers.contains { $0.host.isName }
    }
  }

  /// Whether the provider can be told of DO and CD.
  package var knowsDNSSECFlags: Bool {
    switch service {
    case .json, .doh: true
    default: false
    }
  }

  /// Whether clients' own subnets are sent.
  package var passesClientSubnet: Bool {
    if case .table = service { return false }
    return clientSubnet == .fromClient
  }
}
