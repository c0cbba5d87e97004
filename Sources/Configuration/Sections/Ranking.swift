// Ranking.swift -- the `[ranking]` section: the order of addresses in a response.

import DNSWire

extension Configuration {
  /// The order of addresses in a response, by measured round trip.
  public struct Ranking: Hashable, Sendable {
    /// How addresses are measured.
    public var probe = Probe.off
    /// How long a measurement is valid.
    public var interval: Duration = .seconds(600)
    /// Probes that replace `probe` for some names.
    public var domains: [DomainName: Probe] = [:]
  }

  /// How an address is measured.
  public enum Probe: Hashable, Sendable {
    /// Not at all.
    case off
    /// By an echo request.
    case icmp
    /// By connecting to this port.
    case tcp(port: UInt16)
  }
}

extension Configuration.Ranking {
  mutating func read(from reader: TableReader) {
    reader.read("probe", &probe, .probe)
    reader.read("interval", &interval, .duration(.seconds(1) ... .seconds(86_400)))
    reader.read("domains", &domains, .probes)
  }
}

extension Form where Result == Configuration.Probe {
  static var probe: Form {
    Form("\"off\", \"icmp\" or \"tcp:PORT\"") { value in
      switch value.line {
      case "off": .off
      case "icmp": .icmp
      case .some(let line) where line.hasPrefix("tcp:"): portNumber(line.dropFirst(4)).map { .tcp(port: $0) }
      default: nil
      }
    }
  }
}

extension Form where Result == [DomainName: Configuration.Probe] {
  /// A table from names to probes.
  static var probes: Form {
    let allowed = "a table, e.g. { \"www.example.com\" = \"tcp:443\" }"
    return Form(allowed: allowed) { value, place, report in
      guard case .table(let table) = value else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      var probes: [DomainName: Configuration.Probe] = [:]
      for (key, value) in table.sorted(by: { $0.key < $1.key }) {
        let inner = place.key(key)
        if let name = Form<DomainName>.domainName.read(.string(key), inner, report),
          let probe = Form<Configuration.Probe>.probe.read(value, inner, report)
        {
          probes[name] = probe
        }
      }
      return probes.count == table.count ? probes : nil
    }
  }
}
