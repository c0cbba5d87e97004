// DashboardTests.swift -- the paths below /dashboard of a running daemon: who gets what, and what attackers get.

import Foundation
import Testing

@Suite(.blocking) struct DashboardTests {
  /// A daemon with a dashboard, a control socket and one provider.
  private struct Scene {
    let lab: Lab
    let simulator: Simulator
    let daemon: Daemon
    let settings: Settings
    let socket: String
    let address: Address

    /// Sends a request in one connection, and returns all that comes.
    func send(_ ask: HTTPAsk) throws -> WebClient.Response { try send(ask, times: 1)[0] }

    /// Sends a request in as many connections, and then returns all that comes.
    func send(_ ask: HTTPAsk, times: Int) throws -> [WebClient.Response] {
      let sockets = try (0..<times).map { _ in try Socket.stream(to: address) }
      for socket in sockets { socket.send(ask.with(\.fields, ask.fields + [("Connection", "close")]).octets) }
      return try sockets.map { socket in
        var octets: [UInt8] = []
        while let piece = socket.receive(within: Socket.patience), !piece.isEmpty { octets += piece }
        return try WebClient.Response(octets)
      }
    }

    func ask(_ method: String, _ path: String, _ fields: [(name: String, value: String)] = [], _ body: String? = nil)
      -> HTTPAsk
    {
      HTTPAsk(
        method: method, target: "/dashboard\(path)", host: "\(address)", fields: fields,
        body: body.map { Array($0.utf8) })
    }

    func get(_ path: String, _ fields: (name: String, value: String)...) throws -> WebClient.Response {
      try send(ask("GET", path, fields))
    }

    /// The status of a request with that Host field.
    func status(_ path: String, host: String?, method: String = "GET") throws -> Int {
      try send(ask(method, path).with(\.host, host)).status
    }

    /// What `httpdnsd dashboard` prints.
    func url() throws -> String {
      let (ending, output, error) = try lab.run(["dashboard", "--socket", socket])
      guard ending == .exited(0) else { throw Failure("dashboard: \(ending) \(error)") }
      return output.trimmingCharacters(in: .newlines)
    }

    func code() throws -> String { String(try url().split(separator: "#")[1]) }

    /// Posts as the page does.
    func post(
      _ path: String, _ body: String, token: String? = nil, _ more: (name: String, value: String)...
    ) throws -> WebClient.Response {
      var fields: [(name: String, value: String)] = [
        ("Origin", "http://\(address)"), ("Content-Type", "application/json"),
      ]
      if let token { fields.append(("Authorization", "Bearer \(token)")) }
      fields = fields.filter { field in !more.contains { $0.name == field.name } } + more.filter { !$0.value.isEmpty }
      return try send(ask("POST", path, fields, body))
    }

    /// Signs in.
    func token() throws -> String {
      let response = try post("/session", "{\"code\":\"\(code())\"}")
      guard let match = response.body.firstMatch(of: #/"token":"([\w-]{43})"/#) else { throw Failure(response.text) }
      return String(match.1)
    }

    /// Begins a stream, and returns its connection.
    func stream(_ path: String, _ fields: (name: String, value: String)...) throws -> DashboardStream {
      try DashboardStream(ask("GET", path, fields).octets, to: address)
    }
  }

  /// - Parameter control: keys of `[control]`; by default also users other than root may watch queries.
  private func withScene(
    _ web: String = "dashboard = true", more: String = "", control: String = "tail = true",
    _ body: (Scene) throws -> Void
  ) throws {
    try withLab { lab in
      let simulator = try lab.simulator()
      var settings = Settings(Settings.doh(simulator.http, "name = \"first\""))
      let socket = settings.openControl(in: lab)
      settings.control += "\n\(control)"
      settings.more = "[web]\naddress = \"127.0.0.1:0\"\n\(web)\n\(more)"
      let daemon = try lab.daemon(settings.text)
      try body(
        Scene(
          lab: lab, simulator: simulator, daemon: daemon, settings: settings, socket: socket,
          address: WebClient(daemon).address))
    }
  }

  // MARK: - Looking

  @Test func `the page and its files come with their types, and 304 afterwards`() throws {
    try withScene { scene in
      let files = [
        ("", "text/html"), ("/app.js", "text/javascript"), ("/chart.js", "text/javascript"), ("/app.css", "text/css"),
        ("/icon.svg", "image/svg+xml"),
      ]
      for (path, type) in files {
        let response = try scene.get(path)
        #expect(response.status == 200 && response.field("Content-Type")?.hasPrefix(type) == true, "\(path)")
        #expect(response.field("Cache-Control") == "no-cache")
        let tag = try #require(response.field("ETag"))
        let again = try scene.get(path, ("If-None-Match", tag))
        #expect(again.status == 304 && again.body.isEmpty && again.field("ETag") == tag)
      }
      #expect(try scene.get("/chart.js").body.contains("Chart.js v3"))
      #expect(try scene.send(scene.ask("HEAD", "")).body.isEmpty)
      for path in ["/none.js", "/Page/app.js", "/../metrics", "/app.js/", "x", "//", "//app.js", "//events"] {
        #expect(try scene.get(path).status == 404, "\(path)")
      }
    }
  }

  @Test func `every answer has the fields that keep others out, a refusal too`() throws {
    try withScene { scene in
      for path in ["", "/app.js", "/history?span=10m", "/history", "/none", "/queries"] {
        let response = try scene.get(path)
        #expect(response.field("Content-Security-Policy")?.hasPrefix("default-src 'none'; script-src 'self'") == true)
        #expect(response.field("X-Content-Type-Options") == "nosniff", "\(path)")
        #expect(response.field("Referrer-Policy") == "no-referrer")
        #expect(response.field("Cross-Origin-Opener-Policy") == "same-origin")
        #expect(response.field("Cross-Origin-Resource-Policy") == "same-origin")
        #expect(!response.text.lowercased().contains("access-control-"))
      }
      #expect(try scene.get("/history?span=10m").field("Cache-Control") == "no-store")
    }
  }

  @Test func `figures are those of the metrics, and hold no name and no reason`() throws {
    try withScene { scene in
      try ask(scene.daemon.address, "www.example.com")
      for _ in 0..<5 { try ask(scene.daemon.address, "www.example.com") }
      let stream = try scene.stream("/events")
      let first = try stream.event("sample")
      #expect(first.data.contains("\"totals\":{\"hit\":5,") && first.data.contains("\"name\":\"first\",\"state\":0"))
      let number = try #require(first.id)
      let second = try stream.event("sample")
      #expect(second.id == number + 1)
      let history = try scene.get("/history?span=10m")
      #expect(history.status == 200 && history.field("Content-Type") == "application/json")
      let root = try #require(JSONSerialization.jsonObject(with: Data(history.body.utf8)) as? [String: Any])
      let columns = try #require(root["columns"] as? [String: [Any]])
      #expect(Set(columns.values.map(\.count)).count == 1 && columns["hit"]!.count >= 2)
      for text in [first.data, history.body] {
        #expect(!text.contains("example") && !text.contains("127.0.0.1"))
      }
      for span in ["", "?span=2h", "?span=", "?span=10m&x", "?x=10m"] {
        #expect(try scene.get("/history\(span)").status == 400, "\(span)")
      }
    }
  }

  @Test func `rows that many ask for at once come to each of them`() throws {
    try withScene { scene in
      for span in ["10m", "1h", "24h"] {
        for response in try scene.send(scene.ask("GET", "/history?span=\(span)"), times: 16) {
          #expect(response.status == 200)
          let root = try #require(JSONSerialization.jsonObject(with: Data(response.body.utf8)) as? [String: Any])
          #expect(root["columns"] is [String: [Any]], "\(response.body)")
        }
      }
    }
  }

  @Test func `a stream goes on where the last one has ended`() throws {
    try withScene { scene in
      let first = try scene.stream("/events")
      let number = try #require(try first.event("sample").id)
      _ = try first.event("sample")
      let second = try scene.stream("/events", ("Last-Event-ID", "\(number)"))
      let event = try second.event("sample")
      #expect(event.id == number + 1 && !event.data.contains("\"now\""))
      let origin = ("Origin", "http://attacker.example")
      #expect(try scene.get("/events", origin).status == 403)
      for id in ["x", "-1", "99999", "1.5", ""] {
        let other = try scene.stream("/events", ("Last-Event-ID", id))
        #expect(try other.event("sample").data.contains("\"now\""), "\(id)")
      }
    }
  }

  // MARK: - Who may not

  @Test func `a foreign Host is refused, and a request without one`() throws {
    try withScene("dashboard = true\nhosts = [\"dns.example.com\"]") { scene throws in
      for path in ["", "/app.js", "/history?span=10m", "/events", "/queries", "/none"] {
        #expect(try scene.status(path, host: "attacker.example:80") == 421, "\(path)")
        #expect(try scene.status(path, host: nil) == 400, "\(path)")
      }
      #expect(try scene.status("", host: "dns.example.com") == 200)
      #expect(try scene.status("/action", host: "attacker.example", method: "POST") == 421)
    }
  }

  @Test func `other methods are refused with the right ones`() throws {
    try withScene { scene in
      let cases = [
        ("", "POST", "GET, HEAD"), ("/app.js", "DELETE", "GET, HEAD"), ("/history?span=10m", "POST", "GET"),
        ("/events", "POST", "GET"), ("/queries", "PUT", "GET"), ("/session", "GET", "POST, DELETE"),
        ("/action", "GET", "POST"), ("/action", "OPTIONS", "POST"), ("", "OPTIONS", "GET, HEAD"),
      ]
      for (path, method, allowed) in cases {
        let response = try scene.send(scene.ask(method, path))
        #expect(response.status == 405 && response.field("Allow") == allowed, "\(method) \(path)")
      }
    }
  }

  @Test func `pages of other origins get nothing and do nothing`() throws {
    try withScene { scene in
      let token = try scene.token()
      for site in ["cross-site", "same-site", "Cross-Site"] {
        for path in ["/history?span=10m", "/events", "/queries"] {
          #expect(try scene.get(path, ("Sec-Fetch-Site", site)).status == 403, "\(path)")
        }
        let response = try scene.post(
          "/action", "{\"do\":\"flush\",\"all\":true}", token: token, ("Sec-Fetch-Site", site))
        #expect(response.status == 403)
      }
      try ask(scene.daemon.address, "www.example.com")
      let port = scene.address.port
      let origins = [
        "http://127.0.0.1:\(port == 1 ? 2 : port - 1)", "http://localhost:\(port)", "https://127.0.0.1:\(port)", "null",
        "http://attacker.example",
      ]
      for origin in origins {
        let code = try scene.code()
        #expect(try scene.post("/session", "{\"code\":\"\(code)\"}", ("Origin", origin)).status == 403, "\(origin)")
        let body = "{\"do\":\"flush\",\"all\":true}"
        #expect(try scene.post("/action", body, token: token, ("Origin", origin)).status == 403, "\(origin)")
        let delete = scene.ask("DELETE", "/session", [("Origin", origin), ("Authorization", "Bearer \(token)")])
        #expect(try scene.send(delete).status == 403)
      }
      #expect(try scene.simulator.count.transfers == 1)
      try ask(scene.daemon.address, "www.example.com")
      #expect(try scene.simulator.count.transfers == 1, "nothing was flushed")
    }
  }

  @Test func `a body of another type or length is refused`() throws {
    try withScene { scene in
      let token = try scene.token()
      let body = "{\"do\":\"flush\",\"all\":true}"
      for type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""] {
        #expect(try scene.post("/action", body, token: token, ("Content-Type", type)).status == 415, "\(type)")
      }
      let charset = try scene.post("/action", body, token: token, ("Content-Type", "application/json; charset=utf-8"))
      #expect(charset.status == 200)
      #expect(try scene.post("/action", body + String(repeating: " ", count: 4096), token: token).status == 413)
      #expect(try scene.post("/action", "{\"do\":\"flush\"}", token: token).status == 400)
    }
  }

  // MARK: - Sessions

  @Test func `a code works once, and its token until it is signed out`() throws {
    try withScene { scene in
      let url = try scene.url()
      #expect(url.wholeMatch(of: #/http://127\.0\.0\.1:\d+/dashboard#[\w-]{22}/#) != nil)
      let body = "{\"code\":\"\(url.split(separator: "#")[1])\"}"
      let response = try scene.post("/session", body)
      #expect(response.status == 200 && response.body.contains("\"may_tail\":true"))
      let token = try #require(response.body.firstMatch(of: #/"token":"([^"]+)"/#)).1
      for _ in 0..<3 { #expect(try scene.post("/session", body).status == 401) }
      #expect(scene.daemon.log.matches(of: /refused a code/).count == 1)
      let stream = try scene.stream("/events", ("Authorization", "Bearer \(token)"))
      _ = try stream.event("names")
      let delete = scene.ask("DELETE", "/session", [("Authorization", "Bearer \(token)")])
      #expect(try scene.send(delete).status == 200)
      #expect(try stream.event("notice").data.contains("session has ended") && stream.ends())
      for path in ["/events", "/queries"] {
        #expect(try scene.get(path, ("Authorization", "Bearer \(token)")).status == 401)
      }
      #expect(try scene.send(delete).status == 401)
      #expect(!scene.daemon.log.contains(token))
    }
  }

  @Test(arguments: [nil, "", "Bearer", "Bearer x", "Basic dXNlcjpwYXNz"])
  func `without a session there are no names, no queries and no actions`(field: String?) throws {
    try withScene { scene in
      let fields = field.map { [("Authorization", $0)] } ?? []
      #expect(try scene.send(scene.ask("GET", "/queries", fields)).status == 401)
      if field != nil { #expect(try scene.send(scene.ask("GET", "/events", fields)).status == 401) }
      let json = [("Content-Type", "application/json")]
      let action = scene.ask("POST", "/action", fields + json, "{\"do\":\"flush\",\"all\":true}")
      let response = try scene.send(action)
      #expect(response.status == 401 && response.field("WWW-Authenticate") == "Bearer")
      #expect(try scene.send(scene.ask("DELETE", "/session", fields)).status == 401)
    }
  }

  @Test func `names, servers and reasons come to sessions, and hostile names as printable text`() throws {
    try withScene { scene in
      let names = [
        #"\060img\032src\061x\032onerror\061alert\0401\041\062.example"#, #"\034\039\000\226\128\174.example"#,
      ]
      for name in names { try ask(scene.daemon.address, TestQuery(name)) }
      try ask(scene.daemon.address, "n1.bench.example")
      // The second one is answered without asking again, and has the first one's reason.
      for _ in 0..<2 { try ask(scene.daemon.address, "servfail.example") }
      let stream = try scene.stream("/events", ("Authorization", "Bearer \(scene.token())"))
      let data = try stream.event("names").data
      #expect(data.utf8.allSatisfy { 0x20...0x7E ~= $0 })
      #expect(data.contains("n1.bench.example.") && data.contains("\"server\":\"127.0.0.1"))
      let reason = data.firstMatch(of: #/"name":"servfail\.example\.","type":"A","count":2,.*?"reason":"([^"]*)"/#)
      #expect(reason?.1.hasPrefix("failed a moment ago: ") == true && reason?.1.contains("SERVFAIL") == true, "\(data)")
      #expect(data.contains("img") && data.contains("\\\\000"))
    }
  }

  @Test func `queries come to those who may watch`() throws {
    try withScene { scene in
      let token = try scene.token()
      let all = try scene.stream("/queries", ("Authorization", "Bearer \(token)"))
      let one = try scene.stream("/queries?name=bench.example&failed", ("Authorization", "Bearer \(token)"))
      let third = try scene.get("/queries", ("Authorization", "Bearer \(token)"))
      #expect(third.status == 503 && third.body.contains("2 readers"))
      #expect(try scene.get("/queries?x", ("Authorization", "Bearer \(token)")).status == 400)
      try ask(scene.daemon.address, "www.example.com")
      #expect(try all.event("query").data.contains("\"name\":\"www.example.com.\",\"type\":\"A\""))
      try ask(scene.daemon.address, "servfail.example")
      #expect(try all.event("query").data.contains("servfail.example."))
      withExtendedLifetime(one) {}
    }
  }

  @Test(.enabled(if: geteuid() == 0, "only root can be another user"))
  func `a session of another user watches only while control.tail lets it`() throws {
    try withScene { scene in
      chmod(scene.lab.folder.path, 0o755)
      let group = ["setpriv", "--reuid=65534", "--regid=\(getegid())", "--clear-groups", Programs.daemon]
      let (ending, output, error) = try ChildProcess.run(group + ["dashboard", "--socket", scene.socket])
      guard ending == .exited(0) else { throw Failure("dashboard: \(ending) \(error)") }
      let code = output.split(separator: "#")[1].trimmingCharacters(in: .newlines)
      let response = try scene.post("/session", "{\"code\":\"\(code)\"}")
      let token = try #require(response.body.firstMatch(of: #/"token":"([^"]+)"/#)).1
      let stream = try scene.stream("/queries", ("Authorization", "Bearer \(token)"))
      try ask(scene.daemon.address, "www.example.com")
      _ = try stream.event("query")
      try scene.daemon.reload(scene.settings.text.replacing("tail = true", with: "tail = false"))
      #expect(stream.ends())
      let refused = try scene.get("/queries", ("Authorization", "Bearer \(token)"))
      #expect(refused.status == 403 && refused.body.contains("control.tail"))
    }
  }

  @Test func `the seventeenth session ends the first one and its streams`() throws {
    try withScene { scene in
      let token = try scene.token()
      let (events, queries) = (
        try scene.stream("/events", ("Authorization", "Bearer \(token)")),
        try scene.stream("/queries", ("Authorization", "Bearer \(token)"))
      )
      _ = try events.event("names")
      for _ in 0..<16 { _ = try scene.token() }
      #expect(try events.event("notice").data.contains("session has ended") && events.ends())
      #expect(try queries.event("notice").data.contains("session has ended") && queries.ends())
    }
  }

  // MARK: - Actions

  @Test func `actions do what the commands do, answer with their JSON, and are logged`() throws {
    try withScene(more: "[ranking]\nreports = true\n") { scene in
      let token = try scene.token()
      try ask(scene.daemon.address, "n1.bench.example")
      try ask(scene.daemon.address, "n2.bench.example")
      let refreshed = try scene.post("/action", "{\"do\":\"refresh\",\"name\":\"n1.bench.example\"}", token: token)
      #expect(refreshed.status == 200 && refreshed.body.hasPrefix("{\"questions\":[{\"name\":\"n1.bench.example.\""))
      #expect(try scene.simulator.count.transfers == 3)
      let one = try scene.post("/action", "{\"do\":\"flush\",\"name\":\"N1.bench.example\"}", token: token)
      #expect(one.body == "{\"entries\":1,\"failures\":0,\"not_listed\":0}")
      let none = try scene.post("/action", "{\"do\":\"flush\",\"name\":\"n1.bench.example\"}", token: token)
      #expect(none.status == 200 && none.body.hasPrefix("{\"entries\":0"))
      let bad = "{\"do\":\"report-bad\",\"name\":\"n2.bench.example\",\"address\":\"192.0.2.99\"}"
      #expect(try scene.post("/action", bad, token: token).body == "{\"moved\":0,\"already\":0,\"alone\":0}")
      let all = try scene.post("/action", "{\"do\":\"flush\",\"all\":true}", token: token)
      #expect(all.body.hasPrefix("{\"entries\":1,"))
      for words in ["refresh n1.bench.example.", "flush n1.bench.example.", "report-bad n2.bench.example. 192.0.2.99"] {
        #expect(scene.daemon.log.contains(try Regex("NOTICE dashboard: user \\d+: \(words)")), "\(words)")
      }
    }
  }

  // MARK: - Limits, and the end

  @Test func `a ninth stream is refused, and metrics are still served`() throws {
    try withScene { scene in
      var streams: [DashboardStream] = []
      for _ in 0..<8 { streams.append(try scene.stream("/events")) }
      for stream in streams { _ = try stream.event("sample") }
      let ninth = try scene.get("/events")
      #expect(ninth.status == 503 && ninth.body.contains("8 pages"))
      #expect(try WebClient(scene.daemon).get("/healthz").status == 200)
      streams.removeLast()
      try eventually("a place is free") { try scene.stream("/events").status == 200 ? true : nil }
      withExtendedLifetime(streams) {}
    }
  }

  @Test func `a reload switches the page off and on, ends streams and sessions, and takes other hosts`() throws {
    try withScene("dashboard = true\nhosts = [\"dns.example.com\"]") { scene in
      let token = try scene.token()
      let stream = try scene.stream("/events", ("Authorization", "Bearer \(token)"))
      let text = scene.settings.text
      try scene.daemon.reload(text.replacing("dashboard = true", with: "dashboard = false"))
      let notice = try stream.event("notice")
      #expect(notice.data.contains("switched off") && notice.data.contains("\"again\":false") && stream.ends())
      for path in ["", "/history?span=10m", "/events"] { #expect(try scene.get(path).status == 404, "\(path)") }
      for method in ["POST", "DELETE", "OPTIONS"] {
        let response = try scene.send(scene.ask(method, "/session").with(\.host, "attacker.example"))
        #expect(response.status == 404 && response.field("Content-Security-Policy") != nil, "\(method)")
      }
      let (ending, _, error) = try scene.lab.run(["dashboard", "--socket", scene.socket])
      #expect(ending == .exited(1) && error.contains("the dashboard is off"))
      try scene.daemon.reload(text.replacing("dns.example.com", with: "other.example.com"))
      #expect(try scene.get("").status == 200)
      #expect(try scene.get("/events", ("Authorization", "Bearer \(token)")).status == 401)
      #expect(try scene.status("", host: "dns.example.com") == 421)
      #expect(try scene.status("", host: "other.example.com") == 200)
    }
  }

  @Test func `a daemon that stops says so to the pages`() throws {
    try withScene { scene in
      let stream = try scene.stream("/events")
      _ = try stream.event("sample")
      scene.daemon.process.signal(SIGTERM)
      #expect(try stream.event("notice").data.contains("stops"))
    }
  }

  @Test func `without the key there is no dashboard`() throws {
    try withScene("") { scene throws in
      for path in ["", "/app.js", "/history?span=10m", "/events"] { #expect(try scene.get(path).status == 404) }
    }
  }
}

/// The answer to a request for a stream of events, as it comes.
private final class DashboardStream {
  struct Event {
    var name = ""
    var id: Int?
    var data = ""
  }

  let status: Int
  private let socket: Socket
  private var text = ""

  init(_ request: [UInt8], to address: Address) throws {
    socket = try Socket.stream(to: address)
    socket.send(request)
    var head = ""
    while !head.contains("\r\n\r\n") {
      guard let piece = socket.receive(within: Socket.patience), !piece.isEmpty else { break }
      head += String(decoding: piece, as: UTF8.self)
    }
    guard let end = head.range(of: "\r\n\r\n"), let status = Int(head.dropFirst(9).prefix(3)) else {
      throw Failure("no head: \(head)")
    }
    self.status = status
    text = String(head[end.upperBound...])
  }

  /// The next event with that name; others are passed over.
  func event(_ name: String) throws -> Event {
    while true {
      while let end = text.range(of: "\n\n") {
        var event = Event()
        for line in text[..<end.lowerBound].split(whereSeparator: \.isNewline) {
          if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
          if line.hasPrefix("id: ") { event.id = Int(line.dropFirst(4)) }
          if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
        }
        text = String(text[end.upperBound...])
        if event.name == name { return event }
      }
      guard let piece = socket.receive(within: Socket.patience), !piece.isEmpty else {
        throw Failure("no event \(name): \(text)")
      }
      text += String(decoding: piece, as: UTF8.self)
    }
  }

  /// Whether the daemon ends the stream.
  func ends() -> Bool {
    while !text.contains("0\r\n\r\n") {
      guard let piece = socket.receive(within: Socket.patience) else { return false }
      guard !piece.isEmpty else { return true }
      text += String(decoding: piece, as: UTF8.self)
    }
    return true
  }
}

extension WebClient.Response {
  /// Takes a whole answer apart.
  fileprivate init(_ octets: [UInt8]) throws {
    let text = String(decoding: octets, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n"), let status = Int(text.dropFirst(9).prefix(3)) else {
      throw Failure("no response: \(text)")
    }
    self.init(status: status, text: text, body: String(text[end.upperBound...]))
  }

  fileprivate func field(_ name: String) -> String? {
    let line = text.split(separator: "\r\n").first { $0.lowercased().hasPrefix("\(name.lowercased()): ") }
    return line.map { String($0.dropFirst(name.utf8.count + 2)) }
  }
}
