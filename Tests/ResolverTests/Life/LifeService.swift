// LifeService.swift -- a simulated provider: a server that speaks a dialect, and the provider as the resolver sees it.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import Refresh
import TestSupport

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A question about a host of the zone.
struct LifeQuestion: Hashable {
  var host: Int
  var isIPv6: Bool

  init(_ host: Int, isIPv6: Bool) {
    self.host = host
    self.isIPv6 = isIPv6
  }

  /// The question as it goes upstream; nil for a hostile client's.
  init?(_ question: HTTPDNSQuestion) {
    guard LifeMalice(question.name, question.type) == nil else { return nil }
    let label = question.name.octets.dropFirst(5).prefix { (48...57).contains($0) }
    host = label.reduce(0) { $0 * 10 + Int($1) - 48 }
    isIPv6 = question.type == .aaaa
  }

  /// Its place in a list of all.
  var place: Int { 2 * host + (isIPv6 ? 1 : 0) }
}

/// The servers of a provider, which all know the same.
final class LifeService: HTTPTransport, @unchecked Sendable {
  /// Told what a reply says that the resolver is waiting for.
  var onArrival: ((LifeQuestion, LifeState) -> Void)?
  /// Notified of a transfer that no question needs.
  var onStray: ((String) -> Void)?
  /// What a transfer is made for.
  @TaskLocal static var wanted: Set<LifeQuestion> = []
  private(set) var transfers = 0
  /// Billing units that it asks for at least, and at most: a reply that was lost on its way may be billed.
  private(set) var bill = (least: 0, most: 0)
  private let plan: LifePlan
  private let zone: LifeZone
  private let weather: LifeWeather
  private let loop: any Loop

  init(_ plan: LifePlan, _ zone: LifeZone, _ weather: LifeWeather, on loop: any Loop) {
    self.plan = plan
    self.zone = zone
    self.weather = weather
    self.loop = loop
    silent = Waiters(on: loop)
  }

  func renewConnections() {}

  /// Transfers that get no reply.
  private let silent: Waiters
  private(set) var heardAt = BootInstant(nanoseconds: .min)

  func abandon(_ failure: HTTPFailure) { silent.resumeAll() }

  nonisolated(nonsending) func handshake(timeout: Duration) async -> HTTPFailure? {
    switch weather.outage(at: loop.now.nanoseconds) {
    case .silence:
      await loop.sleep(for: timeout)
      return HTTPFailure(.timeout, "no sign of life")
    case .refusal: return HTTPFailure(.refused, "refused")
    case .failure, nil:
      await loop.sleep(for: .milliseconds(20))
      heardAt = loop.now
      return nil
    }
  }

  nonisolated(nonsending) func send(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
  ) async -> HTTPResult {
    transfers += 1
    if LifeService.wanted.isEmpty, questions(request.target).hostile.isEmpty, malice(request.target) == nil {
      onStray?(request.target)
    }
    let begin = loop.now.nanoseconds
    let result = await result(request, timeout: timeout, begin: begin)
    note(request, result)
    if case .response = result { heardAt = loop.now }
    return result
  }

  /// The prices of the services' documents: nothing, each name and family with addresses, each transfer, each name.
  private func note(_ request: HTTPRequest, _ result: HTTPResult) {
    if case .failure(let failure) = result, failure.kind == .refused { return }
    let isReplied = if case .response = result { true } else { false }
    let (questions, hostile) = questions(request.target)
    switch plan.dialect {
    case .json, .text: break
    case .emas:
      if case .response(let response) = result, response.status == 200 {
        let families = String(decoding: response.body, as: UTF8.self).matches(of: /"ips(v6)?":\["/).count
        bill.least += families
      }
      bill.most += questions.count + 2 * hostile.count
    case .tencent:
      bill.least += isReplied ? 1 : 0
      bill.most += 1
    case .baidu, .volcengine, .jdcloud, .ucloud:
      // Whatever becomes of the request, its names are billed: the counts are equal.
      let count = names(request.target).names.split(separator: ",").count
      bill.least += count
      bill.most += count
    }
  }

  private nonisolated(nonsending) func result(
    _ request: HTTPRequest, timeout: Duration, begin: Int64
  ) async -> HTTPResult {
    let latency = weather.latency(at: begin, request.target)
    switch weather.outage(at: begin) {
    case .silence:
      let end = loop.now + timeout
      await silent.wait(atMost: timeout) { true }
      return .failure(HTTPFailure(loop.now < end ? .unreachable : .timeout, "no reply", wasSent: true))
    case .refusal:
      await loop.sleep(for: .milliseconds(1))
      return .refused
    case .failure:
      await loop.sleep(for: .nanoseconds(latency))
      return plan.dialect == .json ? .json(#"{"Status":2}"#) : .status(503)
    case nil: break
    }
    if let malice = malice(request.target) {
      let asked = names(request.target)
      await loop.sleep(for: malice.isSilent ? timeout : min(.nanoseconds(latency), timeout))
      guard .nanoseconds(latency) <= timeout else { return .late }
      return malice.result(plan.dialect, asked.names, asked.type)
    }
    let (questions, hostile) = questions(request.target)
    let said = questions.map { question in
      zone.state(zone.hosts[question.host], isIPv6: question.isIPv6, at: begin)
    }
    await loop.sleep(for: min(.nanoseconds(latency), timeout))
    guard .nanoseconds(latency) <= timeout else { return .late }
    // What was on its way while the machine slept is as old as that sleep, and does not count.
    let wanted = LifeService.wanted
    let isForAnswer = questions.allSatisfy { question in wanted.contains { $0.host == question.host } }
    if isForAnswer, loop.now.nanoseconds - begin <= 2 * timeout.nanoseconds {
      // A batch asks for each of its names in each of its families; one that was in flight by itself is not kept.
      for (question, state) in zip(questions, said) where wanted.contains(question) { onArrival?(question, state) }
    }
    return reply(questions, said, hostile)
  }

  private func parameters(_ target: String) -> [Substring: Substring] {
    var parameters: [Substring: Substring] = [:]
    for part in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1)
      parameters[pair[0]] = pair.count > 1 ? pair[1] : ""
    }
    return parameters
  }

  /// What the parameters for names and type say.
  private func names(_ target: String) -> (names: String, type: String) {
    let parameters = parameters(target)
    return (
      String(parameters["name"] ?? parameters["host"] ?? parameters["dn"] ?? parameters["domain"] ?? ""),
      String(parameters["type"] ?? "1")
    )
  }

  /// What a question of a hostile client is part of; nil for others and in a batch.
  private func malice(_ target: String) -> LifeMalice? {
    let asked = names(target)
    guard !asked.names.contains("%2C"), !asked.names.contains(","), let name = DomainName(text: asked.names) else {
      return nil
    }
    return LifeMalice(name, RecordType(plan.dialect == .json ? UInt16(asked.type)! : 1))
  }

  /// The hosts that are asked for, and the hostile names in the same batch: those that were answered may be in use.
  private func questions(_ target: String) -> ([LifeQuestion], hostile: [String]) {
    let parameters = parameters(target)
    let names = names(target).names
    let isIPv6: [Bool]
    switch plan.dialect {
    case .json: isIPv6 = [parameters["type"] == "28"]
    case .emas: isIPv6 = parameters["query"] == "4" ? [false] : parameters["query"] == "6" ? [true] : [false, true]
    case .tencent:
      let type = parameters["type"]
      isIPv6 = type == nil ? [false] : type == "aaaa" ? [true] : [false, true]
    case .baidu:
      let type = parameters["type"]
      isIPv6 = type == "ipv4" ? [false] : type == "ipv6" ? [true] : [false, true]
    case .volcengine: isIPv6 = [false, true]
    case .jdcloud: isIPv6 = [parameters["qt"] == "AAAA"]
    case .ucloud: isIPv6 = [parameters["type"] == "6"]
    case .text: isIPv6 = [parameters["type"] == "aaaa"]
    }
    let list = names.replacing("%2C", with: ",").split(separator: ",")
    let questions = list.filter { $0.hasPrefix("host") }.flatMap { name in
      let host = Int(name.dropFirst(4).prefix { $0.isNumber })!
      return isIPv6.map { LifeQuestion(host, isIPv6: $0) }
    }
    return (questions, list.filter { !$0.hasPrefix("host") }.map(String.init))
  }

  private func reply(_ questions: [LifeQuestion], _ said: [LifeState], _ hostile: [String]) -> HTTPResult {
    let answers = zip(questions, said).map { (question: $0, state: $1, texts: texts($0, $1)) }
    switch plan.dialect {
    case .json:
      let first = zone.hosts[questions[0].host]
      let type = questions[0].isIPv6 ? 28 : 1
      let records = answers[0].texts.map {
        #"{"name":"\#(first.text)","type":\#(type),"TTL":\#(first.ttl),"data":"\#($0)"}"#
      }
      let authority = #"{"name":"example","type":6,"TTL":30,"data":"ns.example. admin.example. 1 60 60 60 30"}"#
      return .json(
        #"{"Status":\#(said[0] == .noName ? 3 : 0),"Question":[{"name":"\#(first.text)","type":\#(type)}],"#
          + #""Answer":[\#(records.joined(separator: ","))],"Authority":[\#(records.isEmpty ? authority : "")]}"#)
    case .emas:
      let elements =
        hosts(questions).map { host in
          let lists = [false, true].map { isIPv6 in
            answers.first { $0.question == LifeQuestion(host, isIPv6: isIPv6) }.map { answer in
              let list = answer.texts.map { "\"\($0)\"" }.joined(separator: ",")
              return ",\"\(isIPv6 ? "ipsv6" : "ips")\":[\(list)]"
            } ?? ""
          }
          let ttl = zone.hosts[host].ttl
          return #"{"host":"\#(zone.hosts[host].text)","ttl":\#(ttl),"origin_ttl":\#(ttl)\#(lists.joined())}"#
        } + hostile.map { #"{"host":"\#($0)","ttl":60,"origin_ttl":60,"ips":[]}"# }
      return .json(elements.count == 1 ? elements[0] : "{\"dns\":[\(elements.joined(separator: ","))]}")
    case .tencent:
      let lines =
        hosts(questions).map { host in
          let families = answers.filter { $0.question.host == host }.map { answer in
            answer.texts.isEmpty ? "0" : answer.texts.joined(separator: ";") + ",\(zone.hosts[host].ttl)"
          }
          return "\(zone.hosts[host].text).:\(families.joined(separator: "-"))|192.0.2.1"
        } + hostile.map { "\($0).:0|192.0.2.1" }
      return .response(HTTPResponse(status: 200, body: Array(lines.joined(separator: "\n").utf8)))
    case .baidu:
      let members =
        hosts(questions).map { host in
          let families = answers.filter { $0.question.host == host }.map { answer in
            let list = answer.texts.map { "\"\($0)\"" }.joined(separator: ",")
            return #""\#(answer.question.isIPv6 ? "ipv6" : "ipv4")":{"ip":[\#(list)],"ttl":\#(zone.hosts[host].ttl)}"#
          }
          return "\"\(zone.hosts[host].text)\":{\(families.joined(separator: ","))}"
        } + hostile.map { "\"\($0)\":{}" }
      return .json("{\"msg\":\"ok\",\"data\":{\(members.joined(separator: ","))}}")
    case .jdcloud:
      let elements =
        answers.map { answer in
          let host = zone.hosts[answer.question.host]
          let texts = answer.texts.map { "\" \($0)\"" }
          return #"{"domain":"\#(host.text)","ips":[\#(texts.joined(separator: ","))],"ttl":\#(host.ttl)}"#
        } + hostile.map { #"{"domain":"\#($0)","ips":[],"ttl":60}"# }
      return .json("{\"ret_code\":0,\"data\":[\(elements.joined(separator: ","))]}")
    case .text:
      let ttl = zone.hosts[questions[0].host].ttl
      let text = answers[0].texts.map { "\($0),\(ttl)" }.joined(separator: ";")
      return .response(HTTPResponse(status: 200, body: Array(text.utf8)))
    case .ucloud:
      guard let answer = answers.first, !answer.texts.isEmpty else { return LifeService.unresolved }
      let host = zone.hosts[answer.question.host]
      let list = answer.texts.map { "\"\($0)\"" }.joined(separator: ",")
      return .json(#"{"host":"\#(host.text)","ip_list":[\#(list)],"ttl":\#(host.ttl)}"#)
    case .volcengine:
      let elements =
        hosts(questions).map { host in
          let texts = answers.filter { $0.question.host == host }.flatMap(\.texts).map { "\"\($0)\"" }
          let ttl = zone.hosts[host].ttl
          return #"{"host":"\#(zone.hosts[host].text)","ips":[\#(texts.joined(separator: ","))],"ttl":\#(ttl)}"#
        } + hostile.map { #"{"host":"\#($0)","ips":[]}"# }
      return .json(elements.count == 1 ? elements[0] : "{\"dns\":[\(elements.joined(separator: ","))]}")
    }
  }

  /// UCloud's reply for a name without a record.
  static let unresolved = HTTPResult.response(
    HTTPResponse(
      status: 404, contentType: "application/json",
      body: Array(#"{"status":404,"code":"FAIL_TO_RESOLVE","message":"record cannot be found"}"#.utf8)))

  private func hosts(_ questions: [LifeQuestion]) -> [Int] {
    var hosts: [Int] = []
    for question in questions where hosts.last != question.host { hosts.append(question.host) }
    return hosts
  }

  private func texts(_ question: LifeQuestion, _ state: LifeState) -> [String] {
    guard case .addresses(let era) = state else { return [] }
    return zone.addresses(zone.hosts[question.host], isIPv6: question.isIPv6, era: era)
      .map { IPAddress(octets: $0)!.description }
  }
}

/// The network's resolver: it knows every host, by addresses that no provider has.
final class LifeLocalDNS {
  private(set) var upstream: ScriptedLocalDNS
  var onAsk: ((LifeQuestion) -> Void)?

  init(on loop: SimulatedLoop) {
    upstream = ScriptedLocalDNS(on: loop) { _, _ in .silence }
    upstream.script = { [weak self] question, _ in
      guard let asked = LifeQuestion(question) else {
        return .answer(.negative(.nxDomain, zone: name("example"), ttl: 30), after: .milliseconds(1))
      }
      self?.onAsk?(asked)
      return .answer(
        .addresses(question.name, question.type == .a ? LifeLocalDNS.address : LifeLocalDNS.address6, ttl: 300),
        after: .milliseconds(1))
    }
  }

  private static let (address, address6) = ("10.9.9.9", "fd00::9")

  /// Whether these are its addresses.
  static func gave(_ message: Message) -> Bool {
    message.answers.contains {
      $0.rdata == IPAddress(text: address)!.octets || $0.rdata == IPAddress(text: address6)!.octets
    }
  }
}

extension HTTPResult {
  /// A reply that does not come in time.
  static let late = HTTPResult.failure(HTTPFailure(.timeout, "the time was up", wasSent: true))
}

/// A provider that reports its questions, with or without a waiting client.
final class LifeProvider: TestUpstream {
  var onAsk: ((LifeQuestion) -> Void)?
  var onRecovery: (() -> Void)?
  var onHostile: ((LifeMalice) -> Void)?
  var onRefresh: (([LifeQuestion], _ isThere: Bool?) -> Void)?
  private let inner: HTTPDNSProvider

  init(_ plan: LifePlan, _ service: LifeService, on loop: any Loop) {
    let dialect: any Dialect =
      switch plan.dialect {
      case .json: JSONDialect(flavour: .generic, path: "/resolve")
      case .emas: EMASDialect(accountID: "1", secretKey: nil, isEncrypted: false)
      case .tencent: TencentDialect(account: .https(token: Secret("token"), id: nil))
      case .text: TextDialect(form: .oneOneFour, path: "/d")
      case .ucloud: UCloudDialect(account: .init(id: "1", secret: Secret("secret")))
      case .jdcloud: JDCloudDialect(account: .init(id: "1", secret: Secret("key")))
      case .volcengine:
        VolcengineDialect(account: .init(id: "1", secret: Secret("secret")), isEncrypted: false)
      case .baidu: BaiduDialect(account: .init(id: "1", secret: Secret("secret")), isEncrypted: false)
      }
    var settings = Configuration.Provider.tested(name: "first")
    settings.fallbackOnEmpty = false
    inner = HTTPDNSProvider(
      settings, dialect: dialect,
      servers: (1...plan.servers).map { number in
        ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.\(number)")!]) { _ in service }
      }, loop: loop)
  }

  /// A unit for each transfer, so that the plan's budget applies to any dialect.
  var traits: UpstreamTraits {
    var traits = inner.traits
    traits.refreshPrice = .oneUnit
    return traits
  }

  /// Billing units so far.
  var units: Int { inner.counters.values.units }
  var name: String { inner.name }
  var pace: UpstreamPace { inner.pace }
  func serves(_ question: HTTPDNSQuestion) -> Bool { inner.serves(question) }
  func isFit(for question: HTTPDNSQuestion) -> Bool { inner.isFit(for: question) }
  func networkHasChanged() { inner.networkHasChanged() }

  /// Asks for a caller inside the daemon.
  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    await inner.ask(question, deadline: deadline, isLastResort: isLastResort)
  }

  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void) {
    inner.health.onRecovery = { [weak self] in
      self?.onRecovery?()
      onRecovery()
    }
  }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let asked = LifeQuestion(question)
    if let asked { onAsk?(asked) }
    if let malice = LifeMalice(question.name, question.type) { onHostile?(malice) }
    return await LifeService.$wanted.withValue(Self.kept(asked.map { [$0] } ?? [])) {
      await inner.ask(question, for: asking, deadline: deadline, isLastResort: isLastResort)
    }
  }

  /// What is kept of the answers: that of the other family, too, if it comes along.
  private static func kept(_ asked: [LifeQuestion]) -> Set<LifeQuestion> {
    Set(asked.flatMap { question in [false, true].map { LifeQuestion(question.host, isIPv6: $0) } })
  }

  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    let asked = questions.compactMap { LifeQuestion($0) }
    onRefresh?(asked, nil)
    let result = await LifeService.$wanted.withValue(Self.kept(asked)) {
      await inner.refresh(questions, deadline: deadline)
    }
    if case .success = result { onRefresh?(asked, true) } else { onRefresh?(asked, false) }
    return result
  }
}
