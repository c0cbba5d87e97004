// Support.swift -- short ways to query a route table and to write expected answers.

import DNSWire
import Routing

/// A table's decision, with the local answer in full.
enum Outcome: Equatable, CustomStringConvertible {
  case route(UInt16)
  case noData(String)
  case nxDomain(String)
  case blocked
  case refused
  case records([String])
  case other(String)

  var description: String {
    switch self {
    case .route(let number): "route \(number)"
    case .noData(let zone): "NODATA of \(zone)"
    case .nxDomain(let zone): "NXDOMAIN of \(zone)"
    case .blocked: "blocked"
    case .refused: "refused"
    case .records(let texts): "\(texts)"
    case .other(let text): text
    }
  }

  init(_ answer: LocalAnswer, asked name: DomainName) {
    let zone =
      switch answer.soaOwner {
      case .zone(let zone): zone.text
      case .queryName: "QNAME"
      case nil: "none"
      }
    if answer.extendedError == .blocked, answer.responseCode != .noError {
      self = answer.responseCode == .nxDomain ? .blocked : .refused
    } else if answer.responseCode == .nxDomain, answer.records.isEmpty {
      self = .nxDomain(zone)
    } else if answer.responseCode == .noError, answer.records.isEmpty {
      self = .noData(zone)
    } else if answer.responseCode == .noError, answer.soaOwner == nil {
      self = .records(answer.records.map(text(of:)))
    } else {
      self = .other("\(answer)")
    }
  }
}

private func text(of record: LocalRecord) -> String {
  // By the type, because a name may have as many octets as an address.
  let text = record.type == .ptr ? DomainName(octets: record.rdata)?.text : IPAddress(octets: record.rdata)?.description
  return text ?? "\(record.rdata)"
}

extension RouteTable {
  /// The table's decision for a question given as text.
  func ask(_ name: String, _ type: RecordType = .a) -> Outcome { ask(DomainName(text: name)!, type) }

  /// The table's decision for a question.
  func ask(_ name: DomainName, _ type: RecordType, from client: IPAddress? = nil) -> Outcome {
    switch decision(name, type, from: client) {
    case .route(let number): .route(number)
    case .local(let index): Outcome(localAnswers[Int(index)], asked: name)
    }
  }

  /// The table's decision, unchanged.
  func decision(_ name: DomainName, _ type: RecordType, from client: IPAddress? = nil) -> RouteDecision {
    let group = client.map { classes.number(of: $0) } ?? ClientClasses.none
    return name.lowercased.octets.withUnsafeBufferPointer {
      find($0.baseAddress!, length: $0.count, type: type.rawValue, from: group).decision
    }
  }

  /// A table with only the given parts.
  convenience init(
    _ rules: [(String, RouteAction)] = [], hosts: String = "",
    _ settings: SpecialNamesSettings = SpecialNamesSettings(special: false, portalNames: false)
  ) {
    self.init(
      rules: rules.map { names, action in
        RouteRule(names: names.split(separator: " ").map { NamePattern(text: $0)! }, action: action)
      },
      hosts: try! HostsFile(octets: Array(hosts.utf8)), settings: settings)
  }
}

/// Special names on a machine with LocalDNS as route 7, and as route 8 for portal names.
let withLocalDNS = SpecialNamesSettings(networkRoute: 7, portalRoute: 8)
/// Special names on a machine without LocalDNS.
let withoutLocalDNS = SpecialNamesSettings()
