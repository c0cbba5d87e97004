// DoctorCommand.swift -- `httpdnsd doctor`: checks the machine, or compares all upstreams' answers for a name.

import ArgumentParser
import Control
import DNSWire
import Forwarder
import JSON
import Resolver
import Telemetry
import Upstreams

/// Checks the machine, or asks every provider and every plain resolver for a name's addresses. Needs no running daemon.
struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check this machine, or compare the answers of every provider and plain resolver for a name.",
    discussion: """
      Without a name: the configuration, whether the service's user can read the secrets (as root), whether the daemon \
      answers, which nameserver this machine uses, the clock, each provider, and the network's resolvers (LocalDNS).

      With a name: the answers of all upstreams, which of them look like a hijack, and the route that the name takes.

      The last line is a summary. Each provider charges for the question that it is asked. With --json the output is \
      one object.

      Example: httpdnsd doctor
      Example: sudo httpdnsd doctor --json
      Example: httpdnsd doctor www.example.com

      Exit code 0: everything works; 1: a mistake in the configuration; 2: a check found a problem, an upstream did \
      not answer, or a plain resolver hides the name, invents it or maps it to a private address; 64: a mistake on the \
      command line.
      """)

  @OptionGroup var options: ConfigurationOption

  @Flag(help: "Print JSON.") var json = false

  @Argument(help: "The domain name.") var name: String?

  func validate() throws { if let name { _ = try DomainName(argument: name) } }

  func run() throws {
    let loaded = try LoadedConfiguration(path: options.config)
    guard let name = try name.map({ try DomainName(argument: $0) }) else { return try checkMachine(loaded) }
    let forwarder = try Console.forwarder(loaded)
    let network = NetworkView(loaded.configuration)
    let ways = [RecordType.a, .aaaa].map { forwarder.way(of: Question(name: name, type: $0)) }
    let way = ways[0] == ways[1] ? ways[0] : "A \(ways[0]); AAAA \(ways[1])"
    let opinions = forwarder.opinions(on: name)
    let findings = opinions.map { Finding(opinion: $0, verdict: Agreement(of: $0, among: opinions)) }
    if json { printJSON(name, findings, network, way) } else { printTable(name, findings, network, way) }
    let hasAnswer = findings.isEmpty || !findings.allSatisfy(\.isSwitchedOff)
    if !hasAnswer || findings.contains(where: \.isTrouble) { throw DoctorCommand.trouble }
  }

  private func checkMachine(_ loaded: LoadedConfiguration) throws {
    let check = try MachineCheck(path: options.config, loaded)
    print(json ? check.json + "\n" : check.text, terminator: "")
    if check.hasProblem { throw DoctorCommand.trouble }
  }

  /// The exit code if a check, an upstream or an answer is in trouble.
  private static let trouble = ExitCode(2)

  private func summary(_ name: DomainName, _ findings: [Finding]) -> String {
    func names(_ findings: [Finding]) -> String { findings.map(\.who).distinct.joined(separator: ", ") }
    let failed = findings.filter { $0.failure != nil }
    let blockers = findings.filter { $0.verdict == .hidden }
    let liars = findings.filter { $0.isTrouble && $0.failure == nil && $0.verdict != .hidden }
    let off = findings.filter(\.isSwitchedOff)
    var parts: [String] = []
    if !failed.isEmpty { parts.append("no answer from \(names(failed))") }
    if !liars.isEmpty { parts.append("an answer that looks like a hijack from \(names(liars))") }
    if !blockers.isEmpty { parts.append("the name is blocked or broken at \(names(blockers))") }
    if !off.isEmpty, !parts.isEmpty || off.count == findings.count {
      parts.append("the table of \(names(off)) is switched off")
    }
    guard parts.isEmpty else { return "Problems with \(name): \(parts.joined(separator: "; "))." }
    guard !findings.isEmpty else { return "No upstream can be asked for \(name)." }
    let providers = findings.filter(\.opinion.who.isProvider)
    guard providers.isEmpty || !providers.allSatisfy(\.isSilent) else {
      return "\(name) has no answer from \(names(providers)); the table says why."
    }
    let exception = off.isEmpty ? "" : " except \(names(off)), whose table is switched off,"
    return "All upstreams\(exception) have answered for \(name), and no answer looks suspicious."
  }

  private struct Finding {
    let opinion: Opinion
    let verdict: Agreement

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
      case .notListed(let reason): reason
      case .switchedOff: TableAbsence.switchedOff.text
      case .failure(let reason): "failed: \(reason)"
      }
    }

    /// Why there is no answer; nil if there is one.
    var failure: String? { if case .failure(let reason) = opinion.outcome { reason } else { nil } }

    /// Whether the upstream is a table that is switched off.
    var isSwitchedOff: Bool { opinion.outcome == .switchedOff }

    /// Whether the upstream says nothing about the name, which may not be in its list.
    var isSilent: Bool { if case .notListed = opinion.outcome { true } else { false } }

    /// Different addresses alone are not a problem: many services answer by region.
    var isTrouble: Bool { failure != nil || verdict.isSuspicious && verdict != .differs }

    var ttl: String { if case .addresses(_, let ttl) = opinion.outcome { "\(ttl)" } else { "-" } }

    var milliseconds: String { TimeText.tenths(opinion.took) }
  }

  private func printTable(_ name: DomainName, _ findings: [Finding], _ network: NetworkView, _ way: String) {
    let rows =
      [["upstream", "type", "TTL", "ms", "verdict", "answer"]]
      + findings.map { [$0.who, "\($0.opinion.type)", $0.ttl, $0.milliseconds, $0.verdict.word, $0.result] }
    for line in TextTable.lines(rows) { print(line) }
    // Both families may have the same one.
    let sentences = findings.filter { $0.verdict.isSuspicious }.map { finding in
      "\(finding.who) \(finding.verdict.sentence(about: name, finding.opinion))"
    }
    if !sentences.isEmpty { print("") }
    for sentence in sentences.distinct { print(sentence) }
    print("")
    for line in network.lines { print(line) }
    print("route: \(way)")
    print("")
    print(summary(name, findings))
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
        "searchDomains": JSONText.array(domains), "summary": JSONText.string(summary(name, findings)),
      ]))
  }
}

extension Agreement {
  /// The word in the table and in the JSON member `verdict`.
  fileprivate var word: String {
    switch self {
    case .reference: "-"
    case .agrees: "agrees"
    case .unknown: "unknown"
    case .differs: "differs"
    case .privateAddress: "private"
    case .invented: "invented"
    case .hidden: "denied"
    }
  }

  /// The predicate of a sentence that has the upstream as its subject.
  fileprivate func sentence(about name: DomainName, _ opinion: Opinion) -> String {
    switch self {
    case .privateAddress: "maps the public name \(name) to a private or blocked address: this looks like a hijack."
    case .invented: "returns addresses for \(name), which no provider knows: this looks like a hijack."
    case .hidden where opinion.outcome == .noName:
      "answers NXDOMAIN for \(name) \(opinion.type), but a provider has a record: the name is blocked or broken there."
    case .hidden:
      "has no \(opinion.type) record for \(name), but a provider has one: the name is blocked or broken there."
    default:
      "shares no address with any provider: common for services that answer by region, otherwise a sign of a hijack."
    }
  }
}
