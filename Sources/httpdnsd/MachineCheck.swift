// MachineCheck.swift -- `httpdnsd doctor` without a name: checks this machine, the daemon and its upstreams.

import Configuration
import Control
import DNSWire
import EventLoop
import Forwarder
import Glibc
import HTTPClient
import JSON
import LocalDNS
import Ranking
import Resolver
import SystemSetup
import Telemetry
import Upstreams

struct MachineCheck {
  struct Finding {
    enum Result: String { case ok, note, problem }

    var part: String
    var result: Result
    var text: String
  }

  /// In the order of the checks.
  private(set) var findings: [Finding] = []
  /// Whether the machine's programs get the answers of httpdnsd; nil if that is unknown.
  private var usesDaemon: Bool?
  /// The address by which the daemon is known; nil if no daemon answers.
  private var instance: IPAddress?
  /// The nameservers of the machine's programs, for the summary.
  private var nameservers = "another nameserver"
  /// Whether setup can make the daemon the machine's nameserver: it listens on port 53, or systemd-resolved asks, which can
  /// ask any port.
  private var canBeSetUp = true

  /// The largest tolerable difference from a provider's clock, in seconds: the shortest life of a signature, UCloud's.
  private static let oddClock: Int64 = 60
  /// The name that upstreams are asked for.
  private static let usualName = DomainName(text: "example.com")!

  private let path: String
  private let loaded: LoadedConfiguration

  /// Runs all checks. Takes as long as the slowest upstream.
  ///
  /// - Throws: `ExitCode.failure`, after the reason has been written to stderr.
  init(path: String, _ loaded: LoadedConfiguration) throws {
    (self.path, self.loaded) = (path, loaded)
    add("configuration", .ok, "\(path): no mistakes")
    for warning in loaded.warnings { add("configuration", .note, "\(warning)") }
    checkSecrets()
    let listening = try? ListeningAddresses(config: path, Root())
    canBeSetUp = listening?.listening.contains { $0.port == Nameserver.standardPort } ?? true
    checkDaemon(listening)
    checkProviderStates()
    checkNameserver(listening)
    checkSetup()
    let forwarder = try Console.forwarder(loaded)
    let name = MachineCheck.usualName
    let (opinions, reports) = forwarder.examination(with: name)
    checkClock(reports)
    let providers = opinions.filter { !$0.isOfLocalDNS }
    let isOff = !providers.isEmpty && providers.allSatisfy { $0.outcome == .switchedOff }
    for opinion in opinions { checkUpstream(opinion, name, isOff: isOff) }
    if loaded.configuration.localDNS.servers.isEmpty {
      add("LocalDNS", .note, "none configured (localdns.servers)")
    } else if !opinions.contains(where: \.isOfLocalDNS) {
      add("LocalDNS", .problem, "the network provides no resolver")
    }
    for remark in NetworkView(loaded.configuration).remarks { add("LocalDNS", .note, remark) }
    checkRanking()
    checkFleet()
    checkLists()
    checkSets()
    if loaded.configuration.encrypted.hasListeners {
      findings +=
        EncryptedCheck(loaded.configuration) { [loaded] in
          (try? Console.forwarder(loaded))?.addressesElsewhere(of: $0)
        }.findings
    }
  }

  var hasProblem: Bool { findings.contains { $0.result == .problem } }

  var summary: String {
    let parts = findings.filter { $0.result == .problem }.map(\.part).distinct
    guard parts.isEmpty else {
      return "\(parts.count) \(parts.count == 1 ? "problem" : "problems"): \(parts.joined(separator: ", "))."
    }
    switch usesDaemon {
    case true: return "This machine uses httpdnsd, and everything that httpdnsd needs works."
    case false:
      let remedy =
        canBeSetUp ? "`httpdnsd setup` makes httpdnsd its nameserver" : "setup needs it on port 53 (listen.addresses)"
      return "httpdnsd works, but this machine asks \(nameservers); \(remedy)."
    case nil: return "httpdnsd works; it is unknown whether this machine uses it."
    }
  }

  private mutating func add(_ part: String, _ result: Finding.Result, _ text: String) {
    findings.append(Finding(part: part, result: result, text: text))
  }

  // MARK: parts

  private mutating func checkSecrets() {
    guard !loaded.secretFiles.isEmpty else { return }
    guard let service = ServiceReader(of: path), service.begin() else {
      let rest =
        geteuid() == 0
        ? "a different user that runs httpdnsd with this configuration may be unable to"
        : "run as root, this checks the service's user"
      return add("secrets", .note, "this user can read them; \(rest)")
    }
    var mistakes: [Mistake] = []
    do throws(Mistakes) { _ = try Configuration.load(path: path) } catch { mistakes = error.mistakes }
    service.end()
    for mistake in mistakes { add("secrets", .problem, "\(mistake)") }
    if mistakes.isEmpty { add("secrets", .ok, "the service's user \(service.name) can read them") }
  }

  private mutating func checkDaemon(_ listening: ListeningAddresses?) {
    guard let endpoints = listening?.listening, !endpoints.isEmpty else {
      return add("daemon", .note, "unknown listening addresses")
    }
    guard endpoints.allSatisfy({ $0.port != 0 }) else {
      return add("daemon", .note, "unknown listening port: listen.addresses has port 0")
    }
    let servers = endpoints.map { Healthcheck.target(of: SocketAddress($0)) }
    do throws(EventLoopError) {
      let trial = MachineTrial(socket: loaded.configuration.control.socket, configuration: path)
      for finding in try Healthcheck.run(servers, timeout: .seconds(2)) {
        guard let objection = trial.objection(to: finding) else {
          instance = instance ?? finding.instance ?? trial.instance
          let isRefused = finding.refusal == .refused
          add("daemon", isRefused ? .note : .ok, isRefused ? "\(finding.server) refuses this client" : finding.line)
          if trial.daemon == .older { add("daemon", .note, "an earlier version runs; a restart brings this one") }
          continue
        }
        let isMissing = finding.failure == .network(ECONNREFUSED)
        add("daemon", .problem, objection.sentence + (isMissing ? "; `\(startCommand)` starts it" : ""))
      }
    } catch { add("daemon", .note, "not checked: \(error)") }
  }

  /// What the daemon says of its providers: a sentence for each that is not up, or leaves names without an answer.
  private mutating func checkProviderStates() {
    guard let socket = loaded.configuration.control.socket,
      let answer = try? ControlClient(path: socket).providers(.text),
      let table = answer.content.firstRange(of: "\n\n")
    else { return }
    for line in answer.content[table.upperBound...].split(separator: "\n") {
      let sentence = line[(line.firstRange(of: ": ")?.upperBound ?? line.startIndex)...]
      let isAway = ["no answers", "unreachable", "pausing", "no units"].contains { sentence.hasPrefix($0) }
      add("daemon", isAway ? .problem : .note, "provider \(line)")
    }
  }

  /// Whether what setup has made still has its effect after a change of network.
  private mutating func checkSetup() {
    let application = try? Installation(root: Root()).application()
    if case .lost(let remains) = application { add("setup", .problem, "\(remains)") }
    guard case .journal(let journal) = application else { return }
    if journal.method == .networkManager, let obstacle = DispatcherUnit.obstacle(in: Root()) {
      add("setup", .problem, obstacle)
    }
    if usesDaemon == true, let rival = Diversion(journal.method, journal.nameserver, root: Root()).rival {
      add("setup", .problem, rival)
    }
  }

  /// What programs ask, as their files say, and whether they get httpdnsd's answers, as a lookup says.
  private mutating func checkNameserver(_ listening: ListeningAddresses?) {
    let (text, isListed) = readNameservers(listening)
    let verdict = instance.map { MachineTrial.verdict(about: $0) } ?? .unknown
    switch verdict {
    case .used where isListed != true:
      usesDaemon = true
      add("nameserver", .ok, "\(nameservers), by which programs get httpdnsd's answers")
    case .unused:
      usesDaemon = false
      let unused = "programs do not get httpdnsd's answers"
      switch try? Installation(root: Root()).application() {
      case .journal(let journal):
        let reason = Diversion(journal.method, journal.nameserver, root: Root()).reason
        add("nameserver", .problem, "`setup \(journal.method.rawValue)` is applied, but \(unused): \(reason)")
      case .unreadable: add("nameserver", .problem, "setup is applied, but \(unused); `sudo httpdnsd doctor` shows why")
      case .lost, nil:
        add("nameserver", isListed == true ? .problem : .note, isListed == false ? text : "\(text), but \(unused)")
      }
    case .used:
      usesDaemon = true
      add("nameserver", .ok, text)
    case .unknown, .silent:
      usesDaemon = isListed == true ? nil : isListed
      let isTried = isListed == true ? "; whether programs get its answers could not be tried" : ""
      add("nameserver", .note, text + isTried)
    }
  }

  /// The nameservers in the machine's files, and whether httpdnsd is the first; nil if they list no nameserver.
  private mutating func readNameservers(_ listening: ListeningAddresses?) -> (text: String, isListed: Bool?) {
    let file = "/etc/resolv.conf"
    let servers = ResolverFile(path: file)?.servers ?? []
    let listeners = (listening?.listening ?? []).map { SocketAddress($0) }
    func isOurs(_ server: PlainResolver) -> Bool { SystemResolvers.ownership(of: server, listeners) == .ours }
    func text(_ servers: some Collection<PlainResolver>) -> String {
      servers.map(MachineCheck.host).joined(separator: ", ")
    }
    guard let first = servers.first else { return ("\(file) lists none", nil) }
    nameservers = text(servers)
    if MachineCheck.host(first) == "127.0.0.53" {
      let forwarded = ResolverFile(path: "/run/systemd/resolve/resolv.conf")?.servers ?? []
      let isListed = MachineCheck.isEngaged || forwarded.contains(where: isOurs)
      nameservers = "systemd-resolved"
      canBeSetUp = true
      let asks = isListed ? "httpdnsd" : forwarded.isEmpty ? "an unknown server" : text(forwarded)
      return ("systemd-resolved, which asks \(asks)", isListed)
    }
    switch servers.firstIndex(where: isOurs) {
    case 0?:
      let others = servers.dropFirst()
      let rest = others.isEmpty ? "" : "; when it fails, \(text(others))"
      return ("httpdnsd at \(MachineCheck.host(first))\(rest)", true)
    case let place?:
      return ("\(text(servers[..<place])) before httpdnsd at \(MachineCheck.host(servers[place]))", false)
    case nil: return ("\(text(servers)), not httpdnsd", false)
    }
  }

  private mutating func checkClock(_ reports: [ProviderReport]) {
    let now = Int64(time(nil))
    let text = LogTime.text(unixTime: now)
    guard now >= CertificateClock.dayOfBuild else {
      return add("clock", .problem, "\(text) is before the day of this program's build; set the machine's clock")
    }
    for report in reports {
      guard let difference = report.clockDifference, abs(difference) > MachineCheck.oddClock else { continue }
      let comparison = "differs from provider \(report.name)'s by \(abs(difference)) s"
      add("clock", .problem, "\(text) \(comparison); set the machine's clock")
      return
    }
    var parameters = timex()
    let state = clock_adjtime(CLOCK_REALTIME, &parameters)
    let isSynchronized = state >= 0 && parameters.status & STA_UNSYNC == 0
    add("clock", .ok, isSynchronized ? "\(text), synchronized" : "\(text); it is unknown whether it is synchronized")
  }

  /// What the daemon says of the store that it shares with others.
  private mutating func checkFleet() {
    guard loaded.configuration.cache.redis != nil, loaded.configuration.cache.isEnabled else { return }
    guard let socket = loaded.configuration.control.socket else {
      return add("fleet", .note, "not checked: control.socket is off")
    }
    do throws(ControlClientError) {
      let answer = try ControlClient(path: socket).fleet(.text)
      let line = answer.content.prefix { $0 != "\n" }
      if line.hasPrefix("no store") {
        return add("fleet", .note, "the daemon has no store; `httpdnsd reload` makes it read the configuration")
      }
      let state = line.dropFirst("store".count).drop { $0 == " " }
      add("fleet", answer.isIncomplete ? .problem : .ok, "store \(state)")
    } catch { add("fleet", .note, "not checked: \(error)") }
  }

  /// What the daemon says of the lists of rules.
  private mutating func checkLists() {
    guard loaded.configuration.rules.contains(where: { !$0.lists.isEmpty }),
      let socket = loaded.configuration.control.socket
    else { return }
    do throws(ControlClientError) {
      let answer = try ControlClient(path: socket).lists(.text)
      // Behind the table stand those that could not be read or fetched.
      guard let table = answer.content.firstRange(of: "\n\n") else { return add("lists", .ok, "all are in use") }
      for line in answer.content[table.upperBound...].split(separator: "\n") { add("lists", .problem, "list \(line)") }
    } catch { add("lists", .note, "not checked: \(error)") }
  }

  /// What the daemon says of the firewall sets of rules.
  private mutating func checkSets() {
    guard loaded.configuration.rules.contains(where: { !$0.sets.isEmpty }),
      let socket = loaded.configuration.control.socket
    else { return }
    do throws(ControlClientError) {
      let answer = try ControlClient(path: socket).sets(refilled: false, .text)
      if answer.isIncomplete {
        add("sets", .problem, "a set gets no addresses; `httpdnsd sets` and the log say which and why")
      } else {
        add("sets", .ok, "all get their addresses")
      }
      if answer.content.contains(SetsRequest.intervals) {
        add("sets", .note, "an interval set with tens of thousands of elements takes milliseconds for an addition")
      }
    } catch { add("sets", .note, "not checked: \(error)") }
  }

  /// What the daemon says of its measurements.
  private mutating func checkRanking() {
    guard RankingSettings(loaded.configuration).measures else { return }
    guard let socket = loaded.configuration.control.socket else {
      return add("ranking", .note, "not checked: control.socket is off")
    }
    do throws(ControlClientError) {
      guard let ranking = try ControlClient(path: socket).sample().ranking else {
        return add("ranking", .note, "the daemon measures nothing; `httpdnsd reload` makes it read the configuration")
      }
      for problem in ranking.problems { add("ranking", .note, problem) }
      guard ranking.problems.isEmpty else { return }
      let answers = "\(counted(ranking.answers, "answer")) measured by \(counted(ranking.probes, "probe"))"
      add("ranking", .ok, "\(answers), \(ranking.failed) failed")
      for line in ranking.kinds { add("ranking", .ok, line) }
    } catch { add("ranking", .note, "not checked: \(error)") }
  }

  /// - Parameter isOff: whether every provider is a table that is switched off.
  private mutating func checkUpstream(_ opinion: Opinion, _ name: DomainName, isOff: Bool) {
    let part =
      switch opinion.who {
      case .provider(let name): "provider \(name)"
      case .localDNS(let server): "LocalDNS \(server)"
      }
    switch opinion.outcome {
    case .failure(let reason): add(part, .problem, reason)
    case .switchedOff: add(part, isOff ? .problem : .note, "answers no name: \(TableAbsence.switchedOff.text)")
    case .notListed(let reason): add(part, .note, "answers, but not for \(name): \(reason)")
    case .addresses, .noData, .noName: add(part, .ok, "answers for \(name) in \(TimeText.milliseconds(opinion.took))")
    }
  }

  // MARK: helpers

  /// Whether `setup resolved` currently makes the machine ask httpdnsd.
  private static var isEngaged: Bool {
    guard let journal = try? Installation(root: Root()).journal() else { return false }
    return Engagement(journal, root: Root()).isEngaged ?? false
  }

  /// What starts a daemon with this configuration.
  private var startCommand: String {
    ServiceUnit(Root()).reads(path) ? "systemctl start httpdnsd" : "httpdnsd run --config \(path)"
  }

  /// The address as text, without the port if it is 53.
  private static func host(_ server: PlainResolver) -> String {
    server.address.port == Nameserver.standardPort && server.zone == nil ? server.address.host : "\(server)"
  }
}

extension Opinion {
  var isOfLocalDNS: Bool { if case .localDNS = who { true } else { false } }
}

extension MachineCheck {
  /// A table of the findings, and the summary.
  var text: String {
    let rows = findings.map { [$0.part, $0.result.rawValue, $0.text] }
    let lines = TextTable.lines([["check", "result", "finding"]] + rows) + ["", summary]
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String {
    let checks = findings.map { finding in
      JSONText.object([
        "check": JSONText.string(finding.part), "result": JSONText.string(finding.result.rawValue),
        "finding": JSONText.string(finding.text),
      ])
    }
    return JSONText.object([
      "checks": JSONText.array(checks), "uses_httpdnsd": usesDaemon.map { "\($0)" },
      "summary": JSONText.string(summary),
    ])
  }
}

extension [String] {
  /// Each text once, in order.
  var distinct: [String] { reduce(into: []) { if !$0.contains($1) { $0.append($1) } } }
}
