// Ranking.swift -- the `[ranking]` section: the order of addresses in a response.

import DNSWire

extension Configuration {
  /// The order of addresses in a response, by measured round trip and by reports of programs.
  public struct Ranking: Hashable, Sendable {
    /// Whether an AAAA answer is given where IPv6 is measured to be worse than IPv4.
    public enum Families: String, CaseIterable, Hashable, Sendable {
      /// Both families are answered.
      case both
      /// AAAA is answered with NODATA where IPv6 is worse.
      case faster
    }

    /// How addresses are measured, by preference. Empty for not at all.
    public var probe: [Probe] = []
    /// Time between two measurements of a name in use.
    public var interval: Duration = .seconds(600)
    /// How the addresses of some names are measured; the longest pattern wins.
    public var domains: [NamePattern: [Probe]] = [:]
    /// Maximum probes of the whole daemon in any minute.
    public var probesPerMinute = 60
    /// Maximum addresses of each type in an answer, the best ones; 0 means all.
    public var answers = 0
    /// Whether AAAA is withheld where IPv6 is measured to be worse.
    public var families = Families.both
    /// By how much IPv6 must be slower before its addresses are withheld.
    public var familyThreshold: Duration = .milliseconds(50)
    /// Whether programs may report addresses (`httpdnsd report-bad`).
    public var reports = true
    /// How long a reported address stays last.
    public var badFor: Duration = .seconds(600)
  }

  /// How an address is measured.
  public enum Probe: Hashable, Sendable {
    /// By an echo request.
    case icmp
    /// By connecting to this port.
    case tcp(port: UInt16)
  }
}

extension Configuration.Probe: CustomStringConvertible {
  /// As in the file: `icmp` or `tcp:443`.
  public var description: String {
    switch self {
    case .icmp: "icmp"
    case .tcp(let port): "tcp:\(port)"
    }
  }
}

extension Configuration.Ranking {
  mutating func read(from reader: TableReader) {
    reader.read("probe", &probe, .probes)
    reader.read("interval", &interval, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("domains", &domains, .probesByName)
    reader.read("probes_per_minute", &probesPerMinute, .integer(1...6000))
    reader.read("answers", &answers, .integer(0...100))
    reader.read("families", &families, .choice)
    reader.read("family_threshold", &familyThreshold, .duration(.milliseconds(1) ... .seconds(10)))
    reader.read("reports", &reports, .boolean)
    reader.read("bad_for", &badFor, .duration(.seconds(1) ... .seconds(86_400)))
  }
}

extension Form where Result == [Configuration.Probe] {
  /// `off`, or up to three kinds of probe by preference.
  static var probes: Form {
    Form(
      "\"off\", or up to three of \"icmp\" and \"tcp:PORT\" (1 to 65535) by preference, e.g. \"tcp:443,tcp:80,icmp\""
    ) { value in
      guard let line = value.line else { return nil }
      if line == "off" { return [] }
      let probes = line.split(separator: ",", omittingEmptySubsequences: false).map { probe($0) }
      let known = probes.compactMap { $0 }
      guard known.count == probes.count, known.count <= 3, Set(known).count == known.count else { return nil }
      return known
    }
  }

  private static func probe(_ text: Substring) -> Configuration.Probe? {
    var text = text.drop { $0 == " " }
    while text.last == " " { text.removeLast() }
    if text == "icmp" { return .icmp }
    return text.hasPrefix("tcp:") ? portNumber(text.dropFirst(4)).map { .tcp(port: $0) } : nil
  }
}

extension Form where Result == [NamePattern: [Configuration.Probe]] {
  /// A table from name patterns to probes.
  static var probesByName: Form {
    let allowed = "a table, e.g. { \"example.com\" = \"tcp:443\", \"=www.example.net\" = \"off\" }"
    return Form(allowed: allowed) { value, place, report in
      guard case .table(let table) = value else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      var probes: [NamePattern: [Configuration.Probe]] = [:]
      for (key, value) in table.sorted(by: { $0.key < $1.key }) {
        let inner = place.key(key)
        guard let pattern = Form<NamePattern>.namePattern.read(.string(key), inner, report),
          let kinds = Form<[Configuration.Probe]>.probes.read(value, inner, report)
        else { continue }
        if probes[pattern] != nil {
          report.refuse("the same name is listed twice", at: inner, allowed: "remove one", .failure)
        }
        probes[pattern] = kinds
      }
      return probes.count == table.count ? probes : nil
    }
  }
}
