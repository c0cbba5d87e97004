// ListSource.swift -- where a list comes from, and how it is read or fetched.

import Ciphers
import DNSWire

/// A list of the configuration. Two rules that name the same file or URL have one source.
public struct ListSource: Hashable, Sendable {
  /// Where the text is.
  public enum Place: Hashable, Sendable {
    /// An absolute path.
    case file(String)
    /// The text of an `http` or `https` URL, which may contain a user, a password and a query.
    case url(String)
  }

  /// As shown in logs, reports and metrics; see `shown`.
  public let name: String
  public let place: Place
  /// The time between two fetches; ±10 %. A file is watched instead.
  public let interval: Duration
  /// A PEM file of certificates to trust in addition to the system's; empty for none.
  public let caFile: String
  /// As in `HTTPClientOptions`; empty for none.
  public let proxy: String
  /// The largest text in octets, after decompression.
  public let maxSize: Int

  /// - Parameter name: nil for the place as shown.
  public init(
    _ place: Place, name: String? = nil, interval: Duration = .seconds(86_400), caFile: String = "",
    proxy: String = "", maxSize: Int = 64 << 20
  ) {
    self.place = place
    self.name = name ?? place.description
    self.interval = interval
    self.caFile = caFile
    self.proxy = proxy
    self.maxSize = maxSize
  }
}

extension ListSource: Concealed {
  /// The name: URLs and proxies may contain passwords.
  public var description: String { name }
}

extension ListSource.Place: Concealed {
  /// The path, or the URL without user, password, query and fragment.
  public var description: String {
    switch self {
    case .file(let path): path
    case .url(let text): ListURL(text)?.shown ?? "a URL that cannot be fetched"
    }
  }

  /// Names the copy of the text: 32 hexadecimal digits.
  var fingerprint: String {
    let text =
      switch self {
      case .file(let path): "file \(path)"
      case .url(let text): "url \(text)"
      }
    return Hexadecimal.encode(Digest.sha256(Array(text.utf8)).prefix(16))
  }
}

extension Collection<ListSource> {
  /// Each place once; of several sources the first with a name of its own.
  var unique: [ListSource] {
    var indices: [ListSource.Place: Int] = [:]
    var sources: [ListSource] = []
    for source in self {
      if let index = indices[source.place] {
        if sources[index].name == source.place.description { sources[index] = source }
      } else {
        indices[source.place] = sources.count
        sources.append(source)
      }
    }
    return sources
  }
}
