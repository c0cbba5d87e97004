// LifeHostility.swift -- clients that mean harm: what they ask, what their zone answers, and what they may take.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage

@testable import ForwarderTestSupport

/// What a hostile client does in a burst. Its zone is `LifeMalice.zone`; the provider itself is well.
enum LifeMalice: Int, CaseIterable {
  /// Names that do not exist, none twice.
  case randomNames
  /// Names whose servers never answer.
  case lameZone
  /// Answers that cannot be read.
  case brokenAnswers
  /// More octets than any answer may have.
  case longAnswers
  /// HTTP 403, as a filter in front of the provider says it.
  case refusals
  /// HTTP 500.
  case serverErrors
  /// SERVFAIL, as a validator says it.
  case bogus
  /// One question over and over.
  case flood
  /// Types without data, of names in use.
  case oddTypes
  /// Nine domains that are answered at first and then never again.
  case dyingDomains
  /// Domains without number that are never answered.
  case deadDomains
  /// Names that the provider refuses, in domains without number.
  case refusedDomains

  /// The hostile client's own zone.
  static let zone = "evil.example"

  /// Whether the provider does not answer.
  var isSilent: Bool { self == .lameZone || self == .deadDomains }

  /// Whether all questions are about one domain.
  var isOneDomain: Bool {
    switch self {
    case .oddTypes, .dyingDomains, .deadDomains, .refusedDomains: false
    default: true
    }
  }

  /// The question number `number` of a burst.
  func question(_ burst: Int, _ number: Int, hosts: Int) -> (name: String, type: RecordType) {
    switch self {
    case .flood: ("\(label)x\(burst).\(LifeMalice.zone)", .a)
    case .oddTypes: ("host\(number % hosts).example", RecordType(UInt16(1000 + (burst * 997 + number) % 60_000)))
    case .dyingDomains:
      ("\((number < 100 ? self : .deadDomains).label)x\(burst)x\(number).evil\(number % 9).example", .a)
    case .deadDomains, .refusedDomains: ("\(label)x\(burst)x\(number).evil\(burst)-\(number).example", .a)
    default: ("\(label)x\(burst)x\(number).\(LifeMalice.zone)", .a)
    }
  }

  /// What its names begin with.
  private var label: String { "k\(rawValue)" }

  /// What a question is part of; nil for one about a host's addresses.
  init?(_ name: DomainName, _ type: RecordType) {
    let label = name.octets.dropFirst().prefix { $0 != UInt8(ascii: "x") }
    if label.first == UInt8(ascii: "k"), let number = Int(String(decoding: label.dropFirst(), as: UTF8.self)) {
      self.init(rawValue: number)
    } else if type != .a, type != .aaaa {
      self = .oddTypes
    } else {
      return nil
    }
  }

  /// What comes of a transfer for such a question.
  func result(_ dialect: LifeDialect, _ name: String, _ type: String) -> HTTPResult {
    switch self {
    case .lameZone, .deadDomains: return .late
    case .longAnswers: return .failure(HTTPFailure(.tooLarge, "more octets than allowed", wasSent: true))
    case .refusals, .refusedDomains: return .status(403)
    case .serverErrors: return .status(500)
    case .brokenAnswers: return .response(HTTPResponse(status: 200, body: [0xFF, 0xFE, 0xFD]))
    case .bogus where dialect == .json:
      return .json(#"{"Status":2,"Question":[{"name":"\#(name)","type":\#(type)}],"Comment":["EDE(9): bogus"]}"#)
    case .bogus, .randomNames, .flood, .oddTypes, .dyingDomains: return nothing(dialect, name, type)
    }
  }

  private func nothing(_ dialect: LifeDialect, _ name: String, _ type: String) -> HTTPResult {
    switch dialect {
    case .json:
      let authority = #"{"name":"example","type":6,"TTL":30,"data":"ns.example. admin.example. 1 60 60 60 30"}"#
      return .json(
        #"{"Status":\#(self == .randomNames ? 3 : 0),"Question":[{"name":"\#(name)","type":\#(type)}],"#
          + #""Answer":[],"Authority":[\#(authority)]}"#)
    case .emas: return .json(#"{"host":"\#(name)","ttl":60,"origin_ttl":60,"ips":[]}"#)
    case .jdcloud: return .json(#"{"ret_code":0,"data":[{"domain":"\#(name)","ips":[],"ttl":60}]}"#)
    case .ucloud: return LifeService.unresolved
    case .text: return .status(200)
    case .volcengine: return .json(#"{"host":"\#(name)","ips":[]}"#)
    case .baidu: return .json(#"{"msg":"ok","data":{"\#(name)":{}}}"#)
    case .tencent: return .response(HTTPResponse(status: 200, body: Array("\(name).:0|192.0.2.1".utf8)))
    }
  }
}

/// When bursts come and what each is; a function of the seed alone.
struct LifeBursts {
  /// Queries a second, and for how long.
  static let rate = 200, length = 5
  private let seed: UInt64
  /// From one burst to the next, in nanoseconds.
  let pause: Int64

  init(_ plan: LifePlan) {
    seed = plan.seed
    pause = plan.hostility * second
  }

  func malice(_ burst: Int) -> LifeMalice {
    LifeMalice(rawValue: Int(lifeNumber(seed, 30, Int64(burst)) % UInt64(LifeMalice.allCases.count)))!
  }
}

/// Looks on: every hostile query has its answer, and no burst costs more than its share.
final class LifeHostileJudge {
  private(set) var violations: [String] = []
  private(set) var asked = 0
  private var pending: [UInt16: Int64] = [:]
  private var wokeAt = Int64.min
  /// When questions of hostile clients went to the provider.
  private var upstream: [(at: Int64, malice: LifeMalice)] = []
  private let now: () -> Int64

  /// A domain's limit of misses per second; four seconds' worth may come at once.
  static let missesPerSecond = 50
  private static let longestWait = 4400 * millisecond

  init(now: @escaping () -> Int64) { self.now = now }

  func asks(id: UInt16) {
    asked += 1
    pending[id] = now()
  }

  /// The machine has slept, and with it every client that waits.
  func hasWoken() { wokeAt = now() }

  /// A reply to a hostile client.
  func replied(_ message: Message) {
    guard let askedAt = pending.removeValue(forKey: message.id) else {
      return violations.append("a second reply to a hostile client")
    }
    if now() - max(askedAt, wokeAt) > LifeHostileJudge.longestWait {
      violations.append("a hostile client waited too long")
    }
    if !message.answers.isEmpty { violations.append("a hostile client got data that its zone does not have") }
  }

  func askedProvider(_ malice: LifeMalice) { upstream.append((now(), malice)) }

  /// The end: no client waits, and no five seconds had more questions upstream than a domain's share.
  func end() {
    if !pending.isEmpty { violations.append("\(pending.count) hostile queries without a reply") }
    let own = upstream.filter(\.malice.isOneDomain)
    let span = Int64(LifeBursts.length) * second
    let limit = LifeHostileJudge.missesPerSecond * (LifeBursts.length + 4) + 5
    var first = 0
    for last in own.indices {
      while own[last].at - own[first].at >= span { first += 1 }
      guard last - first + 1 > limit else { continue }
      return violations.append(
        "\(last - first + 1) questions about \(LifeMalice.zone) (\(own[last].malice)) went upstream in 5 s")
    }
  }
}
