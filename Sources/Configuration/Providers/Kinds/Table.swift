// Table.swift -- the keys of kind "table": the location of a self-maintained table, and its intervals.

import DNSWire

extension Configuration {
  /// A self-maintained table of names and addresses.
  public struct TableSource: Hashable, Sendable {
    public enum Location: Hashable, Sendable {
      /// A URL; the table is fetched from the provider's servers.
      case url(ProviderURL)
      /// A file, by its absolute path.
      case file(String)
    }

    public var location: Location
    /// `Host` header, and name in the certificate if the URL has an address. Nil means the server's name, as in other
    /// transfers.
    public var host: String?
    /// Time between two fetches of the table.
    public var interval: Duration = .seconds(300)
    /// TTL of the table's addresses. A table has none of its own.
    public var ttl: Duration = .seconds(60)
  }
}

extension Configuration.TableSource {
  /// The table in the fingerprints of cached answers.
  var meaning: String {
    let times = "interval=\(nanoseconds(interval))ns ttl=\(nanoseconds(ttl))ns"
    return switch location {
    case .url(let url): "\(times) host=\(host ?? "-") url=\(url)"
    case .file(let path): "\(times) file=\(path)"
    }
  }

  /// The keys that apply only to a table with a URL.
  static let transferKeys = [
    "host", "scheme", "servers", "tls_name", "ca_file", "pins", "bootstrap", "proxy", "family",
  ]

  /// Reads the table of a provider. After a mistake about its location, the location is a file with an empty path.
  init(from reader: TableReader) {
    self.init(location: .file(""))
    /// URL of the table; needed unless there is a file.
    var url: ProviderURL?
    /// Absolute path of a table on this machine, instead of `url`.
    var file: String?
    reader.read("url", &url, .some(.providerURL))
    reader.read("file", &file, .some(.absolutePath))
    reader.read("host", &host, .some(.tlsName))
    reader.read("interval", &interval, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("ttl", &ttl, .ttl())
    switch (reader.isGiven("url"), reader.isGiven("file")) {
    case (true, true): reader.refuse("file", "url is given too", remedy: "remove one of the two")
    case (false, false): reader.require("url", allowed: "url or file with the location of the table")
    case (true, false): if let url { location = .url(url) }
    case (false, true):
      for key in Configuration.TableSource.transferKeys where reader.isGiven(key) {
        reader.refuse(key, "has no effect with file, which needs no transfer", remedy: "remove the key")
      }
      guard let file else { break }
      reader.requireReadable("file", file)
      location = .file(file)
    }
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "table".
  mutating func readTable(from reader: TableReader) {
    let table = Configuration.TableSource(from: reader)
    kind = .table(table)
    guard case .url(let url) = table.location else {
      (servers, tlsName, path) = ([], "", "")
      reader.ignore { Configuration.TableSource.transferKeys.contains($0) }
      return
    }
    var endpoint = endpoint(at: url, from: reader)
    if !url.host.isName, let host = table.host { endpoint.name = host }
    readServers(at: endpoint, from: reader)
  }
}

private func nanoseconds(_ duration: Duration) -> Int64 {
  let (seconds, attoseconds) = duration.components
  return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
}
