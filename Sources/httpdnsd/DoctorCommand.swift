// DoctorCommand.swift -- `httpdnsd doctor`: what everybody says about a name, side by side, and whether it looks like a hijack.

import ArgumentParser
import Control
import DNSWire
import EventLoop
import Forwarder
import Resolver
import Telemetry

/// Asks every provider and every plain resolver of a configuration for a name's addresses; no daemon needs to run.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Ask every provider and every plain resolver for a name, side by side.",
    discussion: """
      Each provider that charges is paid for its transfers. With --json each finding has its answer, or the reason under \
      "failure" where there is none.

      Example: httpdnsd doctor www.example.com

      Exit code 0: everybody has answered, and nothing looks like a hijack; 1: a mistake in the configuration; 2: \
      somebody has not answered, or a plain resolver hides the name, invents it or sends it to a private address; 64: a \
      mistake on the command line.
      """)

  @OptionGroup var options: ConfigurationOption

  @Flag(help: "Print JSON.")
  var json = false

  @Argument(help: "The domain name.")
  var name: String

  func validate() throws { _ = try owner() }

  func run() throws {
    let name = try owner()
    let loaded = try LoadedConfiguration(path: options.config)
    let forwarder = try Console.forwarder(loaded)
    let network = NetworkView(loaded.configuration)
    let way = forwarder.way(of: Question(name: name, type: .a))
    let opinions = forwarder.opinions(on: name)
    let findings = opinions.map { Finding(opinion: $0, verdict: Verdict(of: $0, among: opinions)) }
    if json { printJSON(name, findings, network, way) } else { printTable(name, findings, network, way) }
    if findings.contains(where: \.isTrouble) { throw DoctorCommand.trouble }
  }

  private func owner() throws -> DomainName {
    let name = try DomainName(argument: name)
    return name
  }

  /// Somebody has not answered, or lies.
  private static let trouble = ExitCode(2)

  private struct Finding {
    let opinion: Opinion
    let verdict: Verdict

    var who: String {
      switch opinion.who {
      case .provider(let name): name
      case .localDNS(let server): "LocalDNS \(server)"
      }
    }

    var result: String {
      switch opinion.outcome {
      case .addresses(let addresses, _): addresses.map(\.description).joined(separator: " ")
      case .noData: "no such address"
      case .noName: "no such name"
      case .notListed: "nothing: no such address, or not in its list"
      case .failure(let reason): "failed: \(reason)"
      }
    }

    /// Why there is no answer; nil where there is one.
    var failure: String? { if case .failure(let reason) = opinion.outcome { reason } else { nil } }

    /// Other addresses alone are no trouble: services answer by region.
    var isTrouble: Bool { failure != nil || verdict.isSuspicious && verdict != .differs }

    var ttl: String { if case .addresses(_, let ttl) = opinion.outcome { "\(ttl)" } else { "-" } }

    var milliseconds: String { TimeText.tenths(opinion.took) }
  }

  private func printTable(_ name: DomainName, _ findings: [Finding], _ network: NetworkView, _ way: String) {
    let rows =
      [["who", "type", "TTL", "ms", "verdict", "answer"]]
      + findings.map {
        [$0.who, "\($0.opinion.type)", $0.ttl, $0.milliseconds, $0.verdict.word, $0.result]
      }
    for line in TextTable.lines(rows) { print(line) }
    let sentences = findings.filter { $0.verdict.isSuspicious }.map { finding in
      "\(finding.who) \(finding.verdict.sentence(about: name))"
    }
    if !sentences.isEmpty { print("") }
    for sentence in sentences { print(sentence) }
    print("")
    for line in network.lines { print(line) }
    print("route: \(way)")
  }

  private func printJSON(_ name: DomainName, _ findings: [Finding], _ network: NetworkView, _ way: String) {
    let rows = findings.map { finding in
      let addresses = finding.opinion.outcome.addresses.map { JSONText.string($0.description) }
      return JSONText.object([
        "who": JSONText.string(finding.who), "type": JSONText.string("\(finding.opinion.type)"),
        "addresses": JSONText.array(addresses), "ms": finding.milliseconds,
        "verdict": JSONText.string(finding.verdict.word), "suspicious": "\(finding.verdict.isSuspicious)",
        "answer": JSONText.string(finding.result), "ttl": Int(finding.ttl).map { "\($0)" },
        "failure": finding.failure.map { JSONText.string($0) },
      ])
    }
    let domains = network.searchDomains.map {
      JSONText.object(["name": JSONText.string($0.name), "meaning": JSONText.string($0.meaning)])
    }
    print(
      JSONText.object([
        "name": JSONText.string(name.description), "findings": JSONText.array(rows), "route": JSONText.string(way),
        "localdns": JSONText.array(network.servers.map { JSONText.string($0) }),
        "searchDomains": JSONText.array(domains),
      ]))
  }
}

extension Verdict {
  /// One word for the table.
  fileprivate var word: String {
    switch self {
    case .reference: "-"
    case .agrees: "agrees"
    case .unknown: "unknown"
    case .differs: "differs"
    case .privateAddress: "private"
    case .invented: "invented"
    case .denied: "denied"
    }
  }

  /// What looks wrong, in a plain sentence.
  fileprivate func sentence(about name: DomainName) -> String {
    switch self {
    case .privateAddress: "sends the public name \(name) to a private or blocked address: this looks like a hijack."
    case .invented: "has addresses for \(name), which no provider knows: this looks like a hijack."
    case .denied: "says that \(name) has no such address, while a provider has one: it is blocked or broken there."
    default:
      "shares no address with any provider: usual where a service answers by region, and else a sign of a hijack."
    }
  }
}
