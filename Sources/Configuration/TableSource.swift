// TableSource.swift -- the keys of kind "table": where a self-built table is, and how long it counts.

import DNSWire

extension Configuration {
  /// A table of names and addresses that somebody keeps himself.
  public struct TableSource: Hashable, Sendable {
    /// Where a table is.
    public enum Place: Hashable, Sendable {
      /// Behind a URL; the provider's servers are asked for it.
      case url(ServiceURL)
      /// In a file, by its absolute path.
      case file(String)
    }

    /// Where the table is.
    public var place: Place
    /// The Host header of its transfers; nil means the server's name, as in every other transfer.
    public var host: String?
    /// After which time it is fetched again.
    public var interval: Duration
    /// The TTL of its addresses, which have none of their own; whole seconds.
    public var ttl: Duration

    /// A table in that place; the rest has the defaults of the file.
    public init(
      _ place: Place, host: String? = nil, interval: Duration = .seconds(300), ttl: Duration = .seconds(60)
    ) {
      self.place = place
      self.host = host
      self.interval = interval
      self.ttl = ttl
    }
  }
}

extension Configuration.TableSource {
  /// What only a table behind a URL has a use for.
  static let transferKeys = [
    "host", "scheme", "servers", "tls_name", "ca_file", "pins", "bootstrap", "proxy", "family",
  ]

  /// The table of a provider. Where something about its place is a mistake, that is a file without a path.
  init(from reader: TableReader) {
    self.init(.file(""))
    var (url, file): (ServiceURL?, String?)
    reader.read("url", &url, .some(.serviceURL))
    reader.read("file", &file, .some(.absolutePath))
    reader.read("host", &host, .some(.tlsName))
    reader.read("interval", &interval, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("ttl", &ttl, .ttl())
    switch (reader.isGiven("url"), reader.isGiven("file")) {
    case (true, true): reader.refuse("file", allowed: "only one of url and file")
    case (false, false): reader.require("url", allowed: "url or file: where the table is")
    case (true, false): if let url { place = .url(url) }
    case (false, true):
      for key in Configuration.TableSource.transferKeys where reader.isGiven(key) {
        reader.refuse(key, allowed: "nothing here with file, for which nobody is asked")
      }
      guard let file else { break }
      reader.requireReadable("file", file)
      place = .file(file)
    }
  }
}

extension Form {
  /// Another form, for a property that may be nil.
  fileprivate static func some<Wrapped>(_ form: Form<Wrapped>) -> Form where Result == Wrapped? {
    Form(allowed: form.allowed) { value, place, report in form.read(value, place, report).map { .some($0) } }
  }
}
