// MetricsTests.swift -- `web.address` of a running daemon: exact counts, without names and clients.

import DNSWire
import Foundation
import Testing

@Suite(.blocking) struct MetricsTests {
  /// A daemon with a web server and one provider, and the simulator behind it.
  private struct Scene {
    let lab: Lab
    let simulator: Simulator
    let daemon: Daemon
    let web: WebClient

    /// The page of one scrape.
    func scrape() throws -> Scrape { Scrape(text: try web.get("/metrics").body) }

    /// What was counted since `earlier`, once the latencies of `answers` are in it: a thread counts them after it has sent.
    func counted(since earlier: Scrape, answers: Double) throws -> Scrape {
      try eventually("the latencies of \(answers) answers") {
        let counted = try scrape() - earlier
        return counted.sum(of: "httpdnsd_response_duration_seconds_count") >= answers ? counted : nil
      }
    }
  }

  /// A store that is not there: its metrics are.
  private static let store = "[cache]\nredis = \"unix:///nonexistent/redis\"\n"

  private func withScene(
    providers: ((Simulator) -> [String])? = nil, listen: String = "", more: String = "", _ body: (Scene) throws -> Void
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings()
      settings.providers = providers?(simulator) ?? [Settings.doh(simulator.http, "name = \"first\"")]
      settings.listen = listen
      settings.more = "[web]\naddress = \"127.0.0.1:0\"\n\(more)"
      let daemon = try lab.daemon(settings.text)
      try body(Scene(lab: lab, simulator: simulator, daemon: daemon, web: WebClient(daemon)))
    }
  }

  @Test func `hits, misses and refusals are counted exactly`() throws {
    let rules = "[[rule]]\nnames = [\"ads.example\"]\nuse = \"nxdomain\"\n"
    try withScene(more: rules) { scene in
      let before = try scene.scrape()
      for index in 0..<5 { try ask(scene.daemon.address, "n\(index).bench.example") }
      for _ in 0..<7 { try ask(scene.daemon.address, "n0.bench.example") }
      for _ in 0..<2 { try ask(scene.daemon.address, "n1.bench.example", over: .tcp) }
      try ask(scene.daemon.address, "www.example.com", "AAAA")
      #expect(try ask(scene.daemon.address, "ads.example").code == .nxDomain)
      try ask(scene.daemon.address, "localhost")
      var chaos = TestQuery("version.bind", "TXT")
      chaos.qclass = 3
      #expect(try ask(scene.daemon.address, chaos).code == .refused)
      var opcode = TestQuery("www.example.com")
      opcode.flags |= 0x2000
      #expect(try ask(scene.daemon.address, opcode).code == .notImp)
      let counted = try scene.counted(since: before, answers: 19)
      let expected: [(String, String, Double)] = [
        ("udp", "miss", 6), ("udp", "hit", 7), ("tcp", "hit", 2), ("udp", "blocked", 1), ("udp", "local", 1),
        ("udp", "refused", 1), ("udp", "invalid", 1), ("tcp", "miss", 0), ("udp", "dropped", 0),
      ]
      for (transport, outcome, count) in expected {
        let name = "httpdnsd_queries_total{transport=\"\(transport)\",outcome=\"\(outcome)\"}"
        #expect(counted[name] == count, "\(name)")
      }
      #expect(counted.sum(of: "httpdnsd_queries_total") == 19)
      #expect(counted.sum(of: "httpdnsd_responses_total") == 19)
      #expect(counted["httpdnsd_responses_total{rcode=\"nxdomain\"}"] == 1)
      #expect(counted["httpdnsd_responses_total{rcode=\"refused\"}"] == 1)
      #expect(counted["httpdnsd_responses_total{rcode=\"notimp\"}"] == 1)
      #expect(counted["httpdnsd_questions_total{type=\"aaaa\"}"] == 1)
      #expect(counted["httpdnsd_response_duration_seconds_count{path=\"hot\"}"] == 13)
      #expect(counted["httpdnsd_response_duration_seconds_count{path=\"cold\"}"] == 6)
      #expect(counted["httpdnsd_upstream_questions_total"] == 6)
      #expect(counted["httpdnsd_cache_insertions_total"] == 6)
      #expect(
        counted["httpdnsd_provider_transfers_total{provider=\"first\"}"] == Double(try scene.simulator.count.transfers))
      #expect(counted["httpdnsd_provider_round_trip_seconds_count{provider=\"first\"}"] == 6)
    }
  }

  @Test func `every thread's queries are in the sum`() throws {
    try withScene(listen: "workers = 2") { scene in
      try ask(scene.daemon.address, "n0.bench.example")
      let before = try scene.scrape()
      for _ in 0..<20 { _ = try askAll(scene.daemon.address, (0..<50).map { _ in TestQuery("n0.bench.example") }) }
      let counted = try scene.counted(since: before, answers: 1000)
      #expect(counted["httpdnsd_queries_total{transport=\"udp\",outcome=\"hit\"}"] == 1000)
      #expect(counted["httpdnsd_response_duration_seconds_count{path=\"hot\"}"] == 1000)
    }
  }

  @Test func `the metrics count a provider's failures by reason and show its state`() throws {
    try withScene { scene in
      try scene.simulator.fault("kind=status&code=429&retry-after=600")
      for domain in ["a.example", "b.example", "c.example"] {
        #expect(try ask(scene.daemon.address, domain).code == .servFail)
      }
      let scrape = try scene.scrape()
      #expect(scrape["httpdnsd_provider_failures_total{provider=\"first\",reason=\"quota\"}"] == 3)
      #expect(scrape["httpdnsd_provider_state{provider=\"first\",state=\"aside\"}"] == 1)
      #expect(scrape["httpdnsd_provider_state{provider=\"first\",state=\"up\"}"] == 0)
      #expect(scrape["httpdnsd_upstream_failures_total"] == 3)
      #expect(scrape["httpdnsd_responses_total{rcode=\"servfail\"}"] == 3)
    }
  }

  @Test func `a reload resets no counter, and a transfer in flight during it is counted`() throws {
    try withScene { scene in
      try ask(scene.daemon.address, "n0.bench.example")
      try scene.simulator.fault("kind=delay&ms=1500")
      let client = try Socket(SOCK_DGRAM)
      try client.connect(to: scene.daemon.address)
      client.send(TestQuery("n1.bench.example").octets)
      try scene.simulator.waitForTransfers(2)
      var pages = [try scene.scrape()]
      let text = try String(contentsOfFile: scene.daemon.configuration, encoding: .utf8)
      for timeout in ["2500ms", "2600ms"] {
        let kind = "kind = \"doh\"\n"
        try scene.daemon.reload(text.replacingOccurrences(of: kind, with: "\(kind)timeout = \"\(timeout)\"\n"))
        pages.append(try scene.scrape())
      }
      #expect(client.receive() != nil)
      try scene.simulator.clearFaults()
      pages.append(try scene.scrape())
      try ask(scene.daemon.address, "n2.bench.example")
      pages.append(try scene.scrape())
      for (earlier, later) in zip(pages, pages.dropFirst()) {
        #expect((later - earlier).counters.filter { $0.value < 0 }.isEmpty)
      }
      let last = try #require(pages.last)
      #expect(last["httpdnsd_provider_transfers_total{provider=\"first\"}"] == 3)
      #expect(last["httpdnsd_provider_round_trip_seconds_count{provider=\"first\"}"] == 3)
    }
  }

  @Test func `promtool accepts the page of metrics`() throws {
    try withScene(more: MetricsTests.store) { scene in
      for name in ["n0.bench.example", "n0.bench.example", "nowhere.example.com"] {
        try ask(scene.daemon.address, name)
      }
      let page = try scene.lab.folder.write(scene.web.get("/metrics").body, to: "page")
      let (ending, output, error) = try ChildProcess.run(["sh", "-c", "promtool check metrics < \(page)"])
      #expect(ending == .exited(0), "\(output)\(error)")
      #expect(output.isEmpty && error.isEmpty, "\(output)\(error)")
    }
  }

  @Test(.enabled(if: geteuid() == 0, "a datagram from port 0 takes a raw socket"))
  func `responses that the kernel refuses are counted, hot or cold`() throws {
    try withScene { scene in
      let query = TestQuery("n1.bench.example").octets
      // The first one waits for the provider, the second one is in the cache.
      for count in 1...2 {
        try sendFromPortZero(query, to: scene.daemon.address)
        _ = try eventually("\(count) unsent responses") {
          try scene.scrape()["httpdnsd_udp_unsent_responses_total"] == Double(count) ? true : nil
        }
      }
    }
  }

  @Test func `alerts and dashboard use existing metrics only, and the dashboard shows all`() throws {
    let rules = Repository.path("Config/prometheus/httpdnsd.rules.yml")
    let (ending, output, error) = try ChildProcess.run(["promtool", "check", "rules", rules])
    #expect(ending == .exited(0), "\(output)\(error)")
    let folder = try TemporaryFolder()
    let list = try folder.write("example.net\n", to: "names")
    let rule = """
      [[rule]]
      lists = ["\(list)", "http://127.0.0.1:1/names"]
      sets = ["inet#none#none"]
      use = "default"
      [encrypted]
      doh_plain = ["127.0.0.1:0"]

      """
    try withScene(more: MetricsTests.store + rule) { scene in
      let page = try scene.web.get("/metrics").body
      let known = Set(page.matches(of: /\n([a-z_]+)[{ ]/).map { String($0.1) })
      for path in [rules, Repository.path("Config/grafana/httpdnsd.json")] {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let asked = Set(text.matches(of: /\b(?:httpdnsd|process)_[a-z_]+/).map { String($0.0) })
        #expect(asked.count > 10)
        #expect(asked.subtracting(known).isEmpty, "\(path): \(asked.subtracting(known))")
      }
      let board = try String(contentsOfFile: Repository.path("Config/grafana/httpdnsd.json"), encoding: .utf8)
      #expect(try JSONSerialization.jsonObject(with: Data(board.utf8)) is [String: Any])
      let families = page.matches(of: #/\n# TYPE (httpdnsd_[a-z_]+)/#).map { String($0.1) }
      #expect(families.count > 40)
      let absent = families.filter { !board.contains("\($0){") && !board.contains("\($0)_bucket{") }
      #expect(absent.isEmpty, "on no panel: \(absent)")
    }
  }

  @Test func `each alert fires in its situation only`() throws {
    let tests = Repository.path("Tests/EndToEndTests/Data/httpdnsd.rules.test.yml")
    let (ending, output, error) = try ChildProcess.run(["promtool", "test", "rules", tests])
    #expect(ending == .exited(0), "\(output)\(error)")
    func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
    let alerts = try text(Repository.path("Config/prometheus/httpdnsd.rules.yml")).matches(of: /- alert: (\w+)/)
    let tried = try text(tests)
    #expect(alerts.count > 5)
    for alert in alerts {
      #expect(tried.contains(try Regex("alertname: \(alert.1), eval_time: \\d+m, exp_alerts: \\[\\]")))
      #expect(tried.contains(try Regex("alertname: \(alert.1)\\s+eval_time: \\d+m\\s+exp_alerts:\\s+- exp_labels")))
    }
  }

  @Test func `LocalDNS's round trips are measured below the duration of a loop turn`() throws {
    try withLab { lab in
      let network = try PlainServer(addresses: ["www.corp.example.": "198.51.100.7"])
      var settings = Settings(Settings.provider("doh", "url = \"https://192.0.2.1/dns-query\""))
      settings.localServers = [network.address]
      settings.more = "[web]\naddress = \"127.0.0.1:0\"\n[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\"\n"
      let daemon = try lab.daemon(settings.text)
      #expect(try ask(daemon.address, "www.corp.example").data == ["198.51.100.7"])
      let scrape = Scrape(text: try WebClient(daemon).get("/metrics").body)
      #expect(scrape["httpdnsd_localdns_round_trip_seconds_count"] == 1)
      #expect(scrape["httpdnsd_localdns_round_trip_seconds_sum"] ?? 0 > 0)
    }
  }

  @Test func `no secret, no name and no client is on any page`() throws {
    let canary = "Canary7f3a9"
    let providers: (Simulator) -> [String] = { simulator in
      let account = "account_id = \"999999\"\naccess_key_id = \"KEYID\"\naccess_key_secret = \"\(canary)\"\n"
      return [
        Settings.alidns(simulator.http, "name = \"signed\"\n\(account)"),
        Settings.doh(simulator.http, "name = \"other\""),
      ]
    }
    try withScene(providers: providers, listen: "allow = [\"127.0.0.0/8\"]") { scene in
      try scene.simulator.fault("kind=status&code=403")
      let query = TestQuery("unmistakable.bench.example")
      try ask(scene.daemon.address, query, from: "127.9.8.7")
      try scene.simulator.clearFaults()
      try ask(scene.daemon.address, query, from: "127.9.8.7")
      for path in ["/metrics", "/healthz", "/readyz", "/unmistakable.bench.example"] {
        let response = try scene.web.get(path)
        for text in [canary, "KEYID", "999999", "unmistakable", "bench", "127.9.8.7", scene.simulator.http.description]
        {
          #expect(!response.text.contains(text), "\(text) at \(path)")
        }
      }
    }
  }

  @Test func `the daemon is healthy and ready while it serves, and not ready while it stops`() throws {
    try withScene { scene in
      #expect(try scene.web.get("/healthz").status == 200)
      #expect(try scene.web.get("/readyz").status == 200)
      // A question in flight keeps the daemon from ending at once.
      try scene.simulator.fault("kind=stall")
      let client = try Socket(SOCK_DGRAM)
      try client.connect(to: scene.daemon.address)
      client.send(TestQuery("n0.bench.example").octets)
      try scene.simulator.waitForTransfers(1)
      scene.daemon.process.signal(SIGTERM)
      try scene.daemon.waitForLog("stopping")
      #expect(try scene.web.get("/readyz").status == 503)
      #expect(try scene.web.get("/healthz").status == 200)
    }
  }

  @Test func `a hundred idle connections starve neither the daemon nor a scrape`() throws {
    try withScene { scene in
      let descriptors = scene.daemon.descriptorCount
      let idle = try (0..<100).map { _ in try Socket.stream(to: scene.web.address) }
      #expect(try ask(scene.daemon.address, "n0.bench.example").data == ["198.18.0.0"])
      for _ in 0..<3 { #expect(try scene.web.get("/healthz").status == 200) }
      #expect(scene.daemon.descriptorCount <= descriptors + 40)
      withExtendedLifetime(idle) {}
    }
  }

  @Test func `a scrape under load costs no query its answer`() throws {
    try withScene { scene in
      try ask(scene.daemon.address, "n0.bench.example")
      let before = try scene.scrape()
      for _ in 0..<10 {
        let sockets = try (0..<50).map { _ in try Socket(SOCK_DGRAM) }
        for socket in sockets {
          try socket.connect(to: scene.daemon.address)
          socket.send(TestQuery("n0.bench.example").octets)
        }
        #expect(try scene.web.get("/metrics").status == 200)
        for socket in sockets { #expect(socket.receive(within: Socket.patience) != nil) }
      }
      let counted = try scene.scrape() - before
      #expect(counted["httpdnsd_queries_total{transport=\"udp\",outcome=\"hit\"}"] == 500)
    }
  }

  @Test(.enabled(if: geteuid() == 0))
  func `a listener thread that stands is named, and healthcheck finds the first`() throws {
    try withScene(listen: "workers = 2") { scene in
      let address = "\(scene.daemon.address)"
      func check() throws -> ChildProcess.Ending { try scene.lab.run("healthcheck", "--address", address).ending }
      let threads = try eventually("two listener threads") {
        let threads = scene.daemon.threads
        return threads.count { $0.name == "listener" } == 2 ? threads : nil
      }
      #expect(try scene.web.get("/healthz").body == "ok\n" && check() == .exited(0))
      // The one that helps begins first.
      for (thread, number) in zip(threads.filter { $0.name == "listener" }, [2, 1]) {
        let frozen = try FrozenThread(thread.id, in: scene.lab)
        let (response, duration) = try timed { try scene.web.get("/healthz") }
        #expect(response.status == 503 && response.body == "listener \(number) of \(address) is stuck\n")
        #expect(duration < .seconds(8))
        #expect(try check() == .exited(number == 1 ? 1 : 0))
        try frozen.thaw()
        #expect(try scene.web.get("/healthz").body == "ok\n" && check() == .exited(0))
      }
      let frozen = try FrozenThread(threads[0].id, in: scene.lab)
      let socket = try Socket.stream(to: scene.web.address)
      socket.send(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
      #expect(socket.receive(within: .milliseconds(500)) == nil)
      #expect(try check() == .exited(1))
      try frozen.thaw()
      #expect(socket.receive() != nil)
    }
  }

  @Test func `an address that is taken is a mistake that ends the start`() throws {
    try withLab { lab in
      let taken = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0))
      listen(taken.descriptor, 1)
      var settings = Settings(Settings.doh(Address("127.0.0.1", 1)))
      settings.more = "[web]\naddress = \"\(taken.address)\""
      let (ending, _, error) = try lab.run("run", "--config", lab.file(settings.text))
      #expect(ending == .exited(1))
      #expect(
        error.contains("web.address: cannot listen on tcp \(taken.address): Address already in use; held by "),
        "\(error)")
    }
  }

  @Test func `an address that the network can reach is taken with a warning`() throws {
    try withLab { lab in
      var settings = Settings(Settings.doh(Address("127.0.0.1", 1)))
      settings.more = "[web]\naddress = \"0.0.0.0:9353\""
      let (ending, _, error) = try lab.run("check", "--config", lab.file(settings.text))
      #expect(ending == .exited(0))
      #expect(error.contains("web.address: 0.0.0.0:9353 lets the network read the metrics"), "\(error)")
    }
  }
}

/// Sends a datagram that claims to come from port 0, to which nothing can be sent back.
private func sendFromPortZero(_ octets: [UInt8], to server: Address) throws {
  let descriptor = socket(AF_INET, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), Int32(IPPROTO_UDP))
  defer { close(descriptor) }
  let length = UInt16(8 + octets.count)
  let packet = [0, server.port, length, 0].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + octets
  var target = sockaddr_in()
  target.sin_family = sa_family_t(AF_INET)
  target.sin_addr.s_addr = inet_addr(server.host)
  let sent = withUnsafeBytes(of: &target) { raw in
    sendto(
      descriptor, packet, packet.count, 0, .init(__sockaddr__: raw.bindMemory(to: sockaddr.self).baseAddress!),
      socklen_t(raw.count))
  }
  try #require(sent == packet.count)
}
