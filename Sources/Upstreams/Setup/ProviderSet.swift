// ProviderSet.swift -- the providers of the running daemon; a reload keeps those that are unchanged.
//
// Resolver's loop only.

import Configuration
import Glibc
import HTTPClient

/// Why a provider cannot be created.
package struct ProviderSetupError: Error, CustomStringConvertible {
  /// The name of the provider in the configuration.
  var provider: String
  /// The problem with its settings or with this machine.
  var reason: HTTPSetupError

  /// One human-readable line.
  package var description: String { "provider \(provider): \(reason.description)" }
}

/// The providers of a configuration, in its order.
package struct ProviderSet {
  private struct Member {
    var settings: Configuration.Provider
    /// The resolvers that look up its servers; nil if no name needs a lookup.
    var resolvers: [Configuration.LocalServer]?
    /// Identifies the content of `ca_file`.
    var certificates: FileStamp?

    func isSame(as other: Member) -> Bool {
      settings == other.settings && resolvers == other.resolvers && certificates == other.certificates
    }
  }

  /// The modification time and the size of a file: it is read again if either changes.
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

  private var members: [(made: Member, upstream: any ConfiguredUpstream)] = []

  package init() {}

  /// The upstreams, in the order of the configuration.
  package var upstreams: [any ConfiguredUpstream] { members.map(\.upstream) }

  /// Starts background work: when the daemon begins to serve, and after each reload.
  package func start() { for member in members { member.upstream.start() } }

  /// Discards connections and failures after a change of network.
  package func networkHasChanged() { for member in members { member.upstream.networkHasChanged() } }

  /// Returns the providers of another configuration. A provider with unchanged settings is reused, with its
  /// connections, its health and its memory; the others are created.
  ///
  /// - Throws: `ProviderSetupError` if one cannot be created; nothing has changed in that case.
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
        let counters = upstream(named: settings.name)?.counters ?? SharedProviderCounters()
        next.members.append((wanted, try factory.make(settings, counters)))
      } catch { throw ProviderSetupError(provider: settings.name, reason: error) }
    }
    return next
  }

  /// Retires the providers that are not in the next set, for those of the same name.
  package func retire(for next: ProviderSet) {
    for member in members where !next.members.contains(where: { $0.upstream === member.upstream }) {
      member.upstream.retire(for: next.upstream(named: member.upstream.name))
    }
  }

  private func upstream(named name: String) -> (any ConfiguredUpstream)? {
    members.first { $0.upstream.name == name }?.upstream
  }
}

extension Configuration.Provider {
  /// Whether LocalDNS resolves the name of one of its servers.
  fileprivate var looksUpServers: Bool {
    guard bootstrap.isEmpty else { return false }
    return kind.listsServerNames || servers.contains { $0.host.isName }
  }
}
