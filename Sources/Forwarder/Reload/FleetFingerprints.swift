// FleetFingerprints.swift -- what makes the answers of a route differ from another daemon's.
//
// Daemons share answers where the fingerprints are equal, so the texts are written field by field, and tests hold them word
// for word.

import Ciphers
import Configuration
import DNSWire
import Resolver

extension Configuration.Provider {
  /// Where its answers come from, and what clients get of them. Without its name and without secrets.
  var fleetMeaning: String {
    let servers = servers.map { "\($0.host.text):\($0.port)" }.sorted().joined(separator: ",")
    return "\(kind.meaning) servers=\(servers) name=\(tlsName) path=\(path) subnet=\(clientSubnet) ad=\(trustsAD)"
      + " empty=\(fallbackOnEmpty)"
  }

  /// Stands for the account whose units are counted: without a colon.
  var fleetAccount: String {
    let account = kind.account ?? "\(tlsName)\(path)"
    return Base64URL.encode(Array(Digest.sha256(Array(account.utf8)).prefix(16)))
  }
}

extension Route {
  /// The text that its fingerprint is made of; nil if its answers are not shared: without providers, or where answers belong
  /// to one network.
  func fleetMeaning(_ configuration: Configuration) -> String? {
    guard !providers.isEmpty, !belongsToNetwork, !isNetwork, !isUnused else { return nil }
    let asked = providers.map { "(\(configuration.providers[$0].fleetMeaning))" }.joined(separator: " ")
    let names = configuration.names
    let filter =
      filtersPrivate && names.rebindProtection
      ? "private=(\(names.rebindAllow.map { "\($0)" }.joined(separator: " "))) "
        + "prefixes=(\(names.rebindPrefixes.map { "\($0)" }.joined(separator: " ")))" : "private=all"
    return "providers=\(asked) ttl=\(ttl.lowest)-\(ttl.highest) negative=\(ttl.highestNegative) fallback=\(fallsBack) "
      + filter
  }

  /// Sets the fingerprint by a configuration that shares its answers.
  mutating func setFleetFingerprint(_ configuration: Configuration) {
    guard configuration.cache.redis != nil else { return }
    fleetFingerprint = fleetMeaning(configuration).map { Digest.sha256(Array($0.utf8)) } ?? []
  }
}
