// ServerScheduleTests.swift -- a provider that lists its servers: when the list is fetched, saved, and no longer valid.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPClient
import HTTPDNS
import HTTPMessage
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ServerScheduleTests {
  private let loop = SimulatedLoop()
  private let begin = SimulatedLoop().now
  private let folder = TemporaryFolder()
  private let notes = Notes()
  private let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
  /// What the servers of a list do, by their address.
  private let listed = ListedServers()

  private func file() -> StateFile { StateFile(path: "\(folder.path)/servers") { [notes] in notes.add($0) } }

  private func boot(
    after latency: Duration = .milliseconds(10), _ script: @escaping (Int) -> HTTPResult
  ) -> ScriptedTransport {
    ScriptedTransport(on: loop) { (script($0), latency) }
  }

  @discardableResult
  private func server(
    _ address: String, after latency: Duration = .milliseconds(10), _ result: HTTPResult
  ) -> ScriptedTransport {
    let transport = ScriptedTransport(on: loop) { _ in (result, latency) }
    listed.transports[address] = transport
    return transport
  }

  private static let answer = HTTPResult.json(#"{"host":"www.example.com","ips":["203.0.113.7"],"ttl":300}"#)

  private func answering(_ address: String) { server(address, ServerScheduleTests.answer) }

  /// A provider whose boot servers give lists by these transports, and this result to questions.
  ///
  /// - Parameter bootAddresses: those of the boot servers; 192.0.2.1 for those without one.
  private func provider(
    _ boot: [ScriptedTransport], answering result: HTTPResult = .refused, identity: String = "100000 http cn",
    file: StateFile? = nil, at bootAddresses: [String] = [], isVerified: Bool = true,
    attemptsBeforeSwitch: Int = 1,
    listTimeout: Duration = .seconds(2),
    source: any ServerListSource = EMASSchedule(accountID: "100000"),
    dialect: any Dialect = EMASDialect(accountID: "100000", secretKey: nil, isEncrypted: false)
  ) -> HTTPDNSProvider {
    let questions = ScriptedTransport(on: loop) { _ in (result, .milliseconds(10)) }
    let schedule = ServerSchedule(
      source, of: .tested(name: "first"), identity: identity,
      bootServers: boot.enumerated().map { number, transport in
        let address = number < bootAddresses.count ? bootAddresses[number] : "192.0.2.1"
        return ProviderServer("boot\(number)", addresses: [IPAddress(text: address)!], isVerified: isVerified) { _ in
          transport
        }
      }, file: file, timeout: listTimeout, loop: loop
    ) { [notes] in notes.add($1) }
    let configured = [ProviderServer("boot", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in questions }]
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: attemptsBeforeSwitch),
      dialect: dialect, servers: configured, loop: loop, schedule: schedule
    ) { [notes] in notes.add($1) }
    schedule.onList = { [weak provider, listed] servers in
      provider?.health.use(
        servers?.map { server in
          guard case .address(let address) = server.host else { preconditionFailure("these lists have addresses only") }
          let text = "\(address)\(server.port.map { ":\($0)" } ?? "")"
          return ProviderServer(text, addresses: [address]) { _ in listed.transports["\(address)"] }
        } ?? configured)
    }
    return provider
  }

  /// Starts a provider, which has its list a second later.
  private func started(_ provider: HTTPDNSProvider) -> HTTPDNSProvider {
    provider.start()
    loop.advance(by: .seconds(1))
    return provider
  }

  private func ask(_ provider: HTTPDNSProvider) -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.run { [loop, question] in
      await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: false)
    }
  }

  private func failure(_ provider: HTTPDNSProvider) -> UpstreamFailure? {
    if case .failure(let failure) = ask(provider) { failure } else { nil }
  }

  private func times(_ transport: ScriptedTransport) -> [Duration] { transport.sent.map { $0.at - begin } }

  @Test func `the first questions go to the boot servers while the list is fetched once`() throws {
    let boot = boot(after: .milliseconds(300)) { _ in .list("198.51.100.1") }
    answering("198.51.100.1")
    let provider = provider([boot], answering: ServerScheduleTests.answer)
    provider.start()
    let answers = loop.run { [loop, question] in
      let tasks = (0..<20).map { _ in
        loop.startTask {
          await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: false)
        }
      }
      var servers: [String?] = []
      for task in tasks { servers.append(try? await task.value.get().server) }
      return servers
    }
    #expect(answers == Array(repeating: "boot", count: 20))
    #expect(loop.now - begin == .milliseconds(10))
    loop.advance(by: .milliseconds(300))
    #expect(try ask(provider).get().server == "198.51.100.1")
    #expect(boot.sent.map(\.request.target) == ["/100000/ss?region=global"])
  }

  @Test(arguments: [
    HTTPResult.status(500), .status(403), .json("<html>"), .json("{}"), .json(#"{"service_ip":[]}"#), .refused,
    .failure(HTTPFailure(.timeout, "no reply", wasSent: true)),
  ])
  func `the boot servers answer as long as there is no list`(_ result: HTTPResult) throws {
    let boot = boot { $0 < 3 ? result : .list("198.51.100.1") }
    answering("198.51.100.1")
    let provider = provider([boot], answering: ServerScheduleTests.answer)
    provider.start()
    for _ in 0..<20 {
      #expect(try ask(provider).get().server == "boot")
      loop.advance(by: .seconds(3))
    }
    loop.advance(by: .seconds(60))
    #expect(try ask(provider).get().server == "198.51.100.1")
  }

  @Test func `a refused or unreachable list has a remedy`() {
    for (result, remedy) in [
      (HTTPResult.status(403), "check servers, and whether the service admits this client"),
      (.failure(HTTPFailure(.unreachable, "No route to host")), "check servers, and this machine's network"),
      (.refused, "nothing listens there, or a firewall refuses; check servers"),
    ] {
      _ = started(provider([boot { _ in result }]))
      #expect(notes.all.last?.hasSuffix("; \(remedy)") == true, "\(notes.all.last ?? "")")
    }
  }

  @Test func `the next boot server is asked if one fails`() throws {
    let servers = [boot { _ in .refused }, boot { _ in .json("<html>") }, boot { _ in .list("198.51.100.1") }]
    answering("198.51.100.1")
    #expect(try ask(started(provider(servers))).get().server == "198.51.100.1")
    #expect(notes.all.isEmpty)
  }

  @Test func `the list is asked for again after eight hours, and the same list changes nothing`() throws {
    let boot = boot { .list($0 < 2 ? "198.51.100.1" : "198.51.100.2") }
    for address in ["198.51.100.1", "198.51.100.2"] { answering(address) }
    let provider = provider([boot])
    provider.start()
    provider.start()
    loop.settle()
    loop.advance(by: .seconds(8 * 3600))
    let before = provider.health.servers.map(ObjectIdentifier.init)
    loop.advance(by: .seconds(1))
    #expect(times(boot) == [.zero, .seconds(28_800) + .milliseconds(10)])
    #expect(provider.health.servers.map(ObjectIdentifier.init) == before)
    #expect(loop.timers.count == 1)
    loop.advance(by: .seconds(28_800))
    #expect(try ask(provider).get().server == "198.51.100.2")
    #expect(boot.sent.count == 3)
  }

  @Test func `when every server of an older list has failed, a new one is asked for at once`() throws {
    let boot = boot { .list($0 == 0 ? "198.51.100.1" : "198.51.100.2") }
    answering("198.51.100.1")
    answering("198.51.100.2")
    let provider = started(provider([boot]))
    _ = try ask(provider).get()
    loop.advance(by: .seconds(100))
    listed.transports["198.51.100.1"]!.script = { _ in (.refused, .milliseconds(10)) }
    let failedAt = loop.now + .milliseconds(10)
    #expect(failure(provider) != nil)
    loop.advance(by: .milliseconds(10))
    #expect(boot.sent.map(\.at) == [begin, failedAt])
    #expect(try ask(provider).get().server == "198.51.100.2")
  }

  @Test func `a list whose servers all fail is asked for again, but never twice within 30 seconds`() throws {
    let boot = boot { .list($0 < 5 ? "198.51.100.1" : "198.51.100.2") }
    server("198.51.100.1", .refused).handshakes = { _ in (HTTPFailure(.refused, "refused"), .zero) }
    answering("198.51.100.2")
    let provider = started(provider([boot]))
    #expect(failure(provider) != nil)
    for _ in 0..<20 {
      _ = ask(provider)
      loop.advance(by: .seconds(1))
    }
    #expect(boot.sent.count == 1)
    loop.advance(by: .seconds(600))
    let gaps = zip(boot.sent.dropFirst(), boot.sent).map { $0.at - $1.at }
    #expect(gaps.count == 5)
    #expect(gaps.allSatisfy { $0 >= .seconds(30) && $0 <= .seconds(90) })
    #expect(try ask(provider).get().server == "198.51.100.2")
  }

  @Test func `without a list the pause doubles from ten seconds to an hour, and starts again`() {
    let boot = boot { $0 == 12 ? .list("198.51.100.1") : .refused }
    answering("198.51.100.1")
    let provider = provider([boot])
    provider.start()
    loop.advance(by: .seconds(13 * 3600))
    let gaps = zip(times(boot).dropFirst(), times(boot)).map { $0 - $1 - .milliseconds(10) }
    let expected = [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600, 28_800, 10, 20]
    #expect(Array(gaps.prefix(15)) == expected.map { Duration.seconds($0) })
    #expect(loop.timers.count == 1)
    #expect(notes.all.allSatisfy { $0.contains("no list of the provider's servers: boot0: ") })
  }

  @Test func `the saved list is used at once, another account's list is not`() throws {
    let list =
      #"{"service_ip":["198.51.100.1","198.51.100.2"],"service_ip_port":[8080],"service_ipv6":["2001:db8::1"]}"#
    let first = provider([boot { _ in .json(list) }], file: file())
    first.start()
    loop.advance(by: .seconds(1))
    let expected = "httpdnsd servers 1 100000 http cn\n198.51.100.1 8080\n198.51.100.2 -\n2001:db8::1 -\n"
    #expect(eventually { file().read(limit: 4096) == Array(expected.utf8) })
    answering("198.51.100.1")
    let silent = boot(after: .seconds(60)) { _ in .refused }
    let second = provider([silent], file: file())
    second.start()
    let now = loop.now
    #expect(try ask(second).get().server == "198.51.100.1:8080")
    #expect(loop.now - now == .milliseconds(10))
    #expect(silent.sent.count == 1)
    #expect(second.health.servers.map(\.description) == ["198.51.100.1:8080", "198.51.100.2", "2001:db8::1"])
    // Servers on this machine are left out, as they are of a new list.
    folder.write("httpdnsd servers 1 100000 http cn\n127.0.0.1 -\n198.51.100.1 8080\n", to: "servers")
    let third = provider([silent], file: file())
    third.start()
    #expect(third.health.servers.map(\.description) == ["198.51.100.1:8080"])
    // The list of another account or region is not used.
    for identity in ["100001 http cn", "100000 http global"] {
      let other = started(provider([boot { _ in .refused }], identity: identity, file: file()))
      #expect(other.health.servers.map(\.description) == ["boot"])
    }
  }

  @Test(arguments: [
    "", "\n", "httpdnsd servers 1 100000 http cn", "httpdnsd servers 2 100000 http cn\n198.51.100.9 -\n",
    "httpdnsd servers 1 100000 http cn\n\n198.51.100.9\n198.51.100.9 65536\n198.51.100.9 -1\n198.51.100.9 0\n 1\n",
    "\u{0}\u{ff}httpdnsd servers 1 100000 http cn\n198.51.100.9 -\n",
  ])
  func `a damaged file is ignored`(_ text: String) throws {
    file().saveNow(Array(text.utf8))
    let boot = boot(after: .milliseconds(50)) { _ in .list("198.51.100.1") }
    answering("198.51.100.1")
    let provider = started(provider([boot], file: file()))
    #expect(try ask(provider).get().server == "198.51.100.1")
    #expect(
      eventually { file().read(limit: 4096) == Array("httpdnsd servers 1 100000 http cn\n198.51.100.1 -\n".utf8) })
  }

  @Test func `a list over http expires within an hour without a successor, and one over https does not`() throws {
    for (isVerified, lifetime) in [(false, Duration.seconds(3600)), (true, .seconds(8 * 3600))] {
      let isDown = TestFlag()
      let boot = boot { _ in isDown.isOn ? .refused : .list("198.51.100.1") }
      answering("198.51.100.1")
      let provider = provider([boot], answering: ServerScheduleTests.answer, isVerified: isVerified)
      _ = started(provider)
      isDown.isOn = true
      // It has been asked for several times by then.
      loop.advance(by: lifetime - .seconds(5))
      #expect(boot.sent.count == (isVerified ? 1 : 7))
      #expect(try ask(provider).get().server == "198.51.100.1")
      // The pause after a failure does not go beyond the end of the list.
      loop.advance(by: .seconds(7))
      #expect(try ask(provider).get().server == (isVerified ? "198.51.100.1" : "boot"))
      // A new list is used, also the same one.
      isDown.isOn = false
      loop.advance(by: .seconds(3600))
      #expect(try ask(provider).get().server == "198.51.100.1")
    }
  }

  @Test func `a list over http that switches the provider off expires as well`() throws {
    let boot = boot { $0 == 0 ? .json(#"{"service_status":"disable"}"#) : .refused }
    let provider = started(provider([boot], answering: ServerScheduleTests.answer, isVerified: false))
    #expect(failure(provider) != nil)
    loop.advance(by: .seconds(3601))
    #expect(try ask(provider).get().server == "boot")
  }

  @Test func `a saved list is not used if lists come over http`() {
    file().saveNow(Array("httpdnsd servers 1 100000 http cn\n198.51.100.9 -\n".utf8))
    let provider = provider([boot { _ in .list("198.51.100.1") }], file: file(), isVerified: false)
    provider.start()
    #expect(provider.health.servers.map(\.description) == ["boot"])
    loop.advance(by: .seconds(1))
    #expect(provider.health.servers.map(\.description) == ["198.51.100.1"])
  }

  /// A list whose request may be signed by the time, and which a service refuses by 401.
  private struct SignedList: ServerListSource {
    var isSigned = true

    func request(unixTime: Int64) -> HTTPRequest { HTTPRequest(target: isSigned ? "/list?t=\(unixTime)" : "/list") }

    func list(
      from response: HTTPResponse
    ) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration) {
      guard response.status == 200 else { throw .authentication }
      return ([ListedServer(.address(IPAddress(text: "198.51.100.1")!))], .seconds(600))
    }
  }

  @Test func `a signed request for the list is repeated once if its refusal corrects the clock`() {
    let start = loop.wallTime
    let dialect = JDCloudDialect(account: .init(id: "1", secret: Secret("key")))
    func sent(_ source: SignedList, ahead: @escaping (Int) -> Int64?) -> [String] {
      let boot = boot { number in
        .response(HTTPResponse(status: ahead(number) == nil ? 200 : 401, date: ahead(number).map { start + $0 }))
      }
      let provider = provider([boot], source: source, dialect: dialect)
      provider.start()
      loop.settle()
      loop.advance(by: .milliseconds(100))
      return boot.sent.map(\.request.target)
    }
    #expect(sent(SignedList()) { $0 == 0 ? 7200 : nil } == ["/list?t=\(start)", "/list?t=\(start + 7200)"])
    #expect(sent(SignedList()) { Int64($0 + 1) * 3600 } == ["/list?t=\(start)", "/list?t=\(start + 3600)"])
    #expect(sent(SignedList()) { _ in 0 } == ["/list?t=\(start)"], "the clock was right")
    #expect(sent(SignedList(isSigned: false)) { _ in 7200 } == ["/list"])
  }

  @Test func `a list leads to this machine or its link only if all servers that give it are on loopback`() {
    let own = ["127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255"]
    let others = ["10.0.0.1", "192.168.0.1", "198.51.100.1"]
    let list = HTTPResult.json(
      #"{"service_ip":["\#((own + others).joined(separator: #"",""#))"],"service_ipv6":["::1","fe80::1","fd00::1"]}"#)
    #expect(
      started(provider([boot { _ in list }])).health.servers.map(\.description) == others + ["fd00::1"])
    #expect(
      started(provider([boot { _ in list }], at: ["127.0.0.1"])).health.servers.map(\.description)
        == own + others + ["::1", "fe80::1", "fd00::1"])
    let unused = boot { _ in .refused }
    #expect(
      started(provider([boot { _ in list }, unused], at: ["127.0.0.1"])).health.servers.map(\.description)
        == others + ["fd00::1"])
    #expect(unused.sent.isEmpty)
    // Without any other server there is no list, and not an empty one, which would switch the provider off.
    #expect(started(provider([boot { _ in .list("127.0.0.1") }])).health.servers.map(\.description) == ["boot"])
    #expect(notes.all.last?.contains("no list of the provider's servers: boot0: ") == true)
  }

  @Test func `a node of UCloud's list that says nothing is replaced by the next one`() throws {
    let account = Configuration.SecretAccount(id: "1", secret: Secret("key"))
    let list = #"{"best_service_node":"http://198.51.100.1","service_node_list":["http://198.51.100.2"]}"#
    let silent = server("198.51.100.1", after: .seconds(3600), .refused)
    server("198.51.100.2", .json(#"{"host":"www.example.com","ip_list":["203.0.113.7"],"ttl":300}"#))
    let provider = started(
      provider(
        [boot { _ in .json(list) }], source: UCloudNodes(account: account), dialect: UCloudDialect(account: account)))
    for expected in [Duration.milliseconds(2010), .milliseconds(10), .milliseconds(10)] {
      let begin = loop.now
      #expect(try ask(provider).get().server == "198.51.100.2")
      #expect(loop.now - begin == expected)
    }
    #expect(silent.sent.count == 1)
  }

  @Test func `an empty list of servers puts the provider aside until one has servers`() throws {
    let boot = boot { (1...3).contains($0) ? .json(#"{"service_status":"disable"}"#) : .list("198.51.100.1") }
    answering("198.51.100.1")
    let provider = started(provider([boot]))
    _ = try ask(provider).get()
    loop.advance(by: .seconds(28_801))
    #expect(provider.health.servers.isEmpty)
    let remedy = "switch it on in the provider's console, and check account_id"
    #expect(notes.all == ["its list of servers says that the service is switched off; \(remedy)"])
    #expect(provider.report.advice == remedy)
    // It is fetched again every hour, and no question waits during all that time.
    for hour in 0..<3 {
      #expect(boot.sent.count == hour + 2)
      let now = loop.now
      #expect(
        failure(provider)?.explanation
          == "pausing: its list of servers says that the service is switched off; \(remedy)")
      #expect(loop.now == now)
      loop.advance(by: .seconds(3601))
    }
    #expect(try ask(provider).get().server == "198.51.100.1")
  }

  @Test func `a refusal by a server of the old list does not affect the new list`() throws {
    let boot = boot { .list($0 == 0 ? "198.51.100.1" : "198.51.100.2") }
    server("198.51.100.1", after: .milliseconds(1900), .status(403))
    answering("198.51.100.2")
    let provider = provider([boot])
    provider.start()
    loop.advance(by: .seconds(28_799))
    #expect(failure(provider)?.reason.hasPrefix("198.51.100.1: ") == true)
    #expect(provider.health.servers.map(\.description) == ["198.51.100.2"])
    #expect(notes.all.isEmpty)
    #expect(try ask(provider).get().server == "198.51.100.2")
  }

  @Test
  func `a question in flight when a new list arrives ends with the old servers and costs the new ones nothing`() {
    let boot = boot { .list($0 == 0 ? "198.51.100.1" : "198.51.100.2") }
    server("198.51.100.1", after: .seconds(60), .refused)
    answering("198.51.100.2")
    let provider = provider([boot])
    provider.start()
    loop.advance(by: .seconds(28_799))
    #expect(failure(provider)?.reason.hasPrefix("198.51.100.1: ") == true)
    #expect(provider.health.servers.map(\.description) == ["198.51.100.2"])
    #expect(provider.report.state == .up)
    #expect(!provider.health.timer.isSet)
    #expect((try? ask(provider).get().server) == "198.51.100.2")
  }

  @Test func `a handshake in flight when a shorter list arrives does not count for the new servers`() {
    let boot = ScriptedTransport(on: loop) { number in
      number == 0
        ? (.list("198.51.100.1", "198.51.100.2"), .milliseconds(10)) : (.list("198.51.100.4"), .milliseconds(2500))
    }
    for address in ["198.51.100.1", "198.51.100.2"] {
      let lost = server(address, .refused)
      lost.handshakes = { _ in (HTTPFailure(.refused, "refused"), .milliseconds(2000)) }
    }
    answering("198.51.100.4")
    let provider = provider([boot], listTimeout: .seconds(10))
    provider.start()
    loop.advance(by: .seconds(100))
    #expect(failure(provider) != nil)
    #expect(provider.report.state.word == "down")
    loop.advance(by: .seconds(4))
    #expect(provider.health.servers.map(\.description) == ["198.51.100.4"])
    #expect(provider.report.state == .up)
    #expect((try? ask(provider).get().server) == "198.51.100.4")
  }
}

/// The servers that lists may name.
private final class ListedServers: @unchecked Sendable {
  var transports: [String: ScriptedTransport] = [:]
}

extension HTTPResult {
  /// A list of servers as EMAS gives it.
  fileprivate static func list(_ addresses: String...) -> HTTPResult {
    json(#"{"service_ip":[\#(addresses.map { "\"\($0)\"" }.joined(separator: ","))]}"#)
  }
}

/// Whether a thread of the program gets there; the bound is wall time.
private func eventually(_ isReached: () -> Bool) -> Bool {
  let clock = ContinuousClock()
  let end = clock.now + .seconds(10)
  while !isReached() {
    guard clock.now < end else { return false }
    sched_yield()
  }
  return true
}
