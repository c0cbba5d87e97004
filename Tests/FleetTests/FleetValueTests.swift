// FleetValueTests.swift -- keys and values there and back, and each check that a value of the store has to pass.

import DNSWire
import Files
import TestSupport
import Testing

@testable import Fleet

private let name = DomainName(text: "www.example.com")!
private let secret = Array("0123456789abcdef0123456789abcdef".utf8)
private let now: Int64 = 1_700_000_000_000

private func question(_ change: (inout FleetQuestion) -> Void = { _ in }) -> FleetQuestion {
  var question = FleetQuestion(
    name: name, type: .a, dnssecOK: false, checkingDisabled: false, subnet: nil,
    fingerprint: [UInt8](repeating: 1, count: 32))
  change(&question)
  return question
}

private func value(_ change: (inout FleetValue) -> Void = { _ in }) -> FleetValue {
  var header = Header()
  header.qr = true
  let message = Message(
    id: 0, header: header, questions: [Message.Entry(Question(name: name, type: .a))],
    answers: [ResourceRecord(owner: name, type: .a, ttl: 60, rdata: [192, 0, 2, 1])])
  var value = FleetValue(
    message: message, scope: nil, extendedError: nil, stored: now - 10_000, expires: now + 50_000, provider: "ali")
  change(&value)
  return value
}

private let plain = FleetKeys(namespace: "httpdnsd", site: "", secret: nil)
private let sealed = FleetKeys(namespace: "httpdnsd", site: "", secret: secret)

@Suite struct `Keys of a fleet` {
  @Test func `are the prefix and 22 characters that do not show the name`() {
    let key = String(decoding: sealed.answer(question()), as: UTF8.self)
    #expect(key.hasPrefix("httpdnsd:1:c:") && key.utf8.count == 13 + 22)
    #expect(String(decoding: sealed.lease(question()), as: UTF8.self) == "httpdnsd:1:l:" + key.dropFirst(13))
    #expect(String(decoding: sealed.units("abc", day: 20_000), as: UTF8.self) == "httpdnsd:1:u:abc:20241004")
    #expect(sealed.units("abc", day: .max) == sealed.units("abc", day: NumberRange.days.upperBound))
    #expect(sealed.units("abc", day: .min) == sealed.units("abc", day: NumberRange.days.lowerBound))
    #expect(String(decoding: sealed.flushes, as: UTF8.self) == "httpdnsd:1:f")
  }

  @Test func `show daemons whether they share, without showing how`() {
    let route = [UInt8](repeating: 1, count: 32)
    let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    func member(_ keys: FleetKeys, _ route: [UInt8]) -> FleetMember {
      FleetMember(id: "a", version: "1", fingerprint: keys.fingerprint(of: route), host: "h")
    }
    for secret in [nil, secret] {
      let own = member(FleetKeys(namespace: "httpdnsd", site: "", secret: secret), route)
      #expect(own.fingerprint.utf8.count == 26)
      #expect(member(FleetKeys(namespace: "httpdnsd", site: "", secret: secret), route).difference(from: own) == nil)
      let other = FleetKeys(namespace: "httpdnsd", site: "", secret: Array("another secret of 32 octets or so".utf8))
      #expect(member(other, route).difference(from: own) == .secret)
      let site = FleetKeys(namespace: "httpdnsd", site: "fra", secret: secret)
      #expect(member(site, route).difference(from: own) == .site)
      let routed = member(FleetKeys(namespace: "httpdnsd", site: "", secret: secret), [UInt8](repeating: 2, count: 32))
      #expect(routed.difference(from: own) == .configuration)
      var strange = own
      for text in ["", "x", ".", "a.b", "a.b.c.d", "..."] {
        strange.fingerprint = text
        #expect(strange.difference(from: own) == .configuration && own.difference(from: strange) == .configuration)
      }
    }
  }

  @Test func `differ with all that makes answers differ`() {
    var all = [plain.answer(question()), sealed.answer(question())]
    for change: (inout FleetQuestion) -> Void in [
      { $0.name = DomainName(text: "example.com")! }, { $0.type = .aaaa }, { $0.dnssecOK = true },
      { $0.checkingDisabled = true }, { $0.subnet = IPPrefix(text: "192.0.2.0/24") },
      { $0.subnet = IPPrefix(text: "192.0.2.0/23") }, { $0.subnet = IPPrefix(text: "2001:db8::/56") },
      { $0.fingerprint[31] = 2 },
    ] { all.append(plain.answer(question(change))) }
    all.append(FleetKeys(namespace: "other", site: "", secret: nil).answer(question()))
    all.append(FleetKeys(namespace: "httpdnsd", site: "fra", secret: nil).answer(question()))
    all.append(FleetKeys(namespace: "httpdnsd", site: "", secret: secret + [1]).answer(question()))
    #expect(Set(all).count == all.count)
    #expect(plain.answer(question()) == FleetKeys(namespace: "httpdnsd", site: "", secret: nil).answer(question()))
  }
}

@Suite struct `A value of a fleet` {
  private func read(
    _ octets: [UInt8]?, _ keys: FleetKeys, _ asked: FleetQuestion = question(), at time: Int64 = now
  ) throws(FleetRejection) -> FleetValue {
    guard let octets else { throw .size }
    return try FleetValue(octets, for: keys.answer(asked), keys, question: asked, now: time)
  }

  private func written(_ value: FleetValue, _ keys: FleetKeys) -> [UInt8]? {
    value.octets(for: keys.answer(question()), keys)
  }

  @Test func `comes back as it was, plain and sealed`() throws {
    for keys in [plain, sealed] {
      for change: (inout FleetValue) -> Void in [
        { _ in }, { $0.scope = 24 }, { $0.extendedError = .filtered }, { $0.message.header.ad = true },
        { $0.provider = "" }, { $0.provider = "名前" },
        {
          $0.message.header.rcode = 3
          $0.message.answers = []
        },
      ] {
        let value = value(change)
        #expect(try read(written(value, keys), keys) == value)
      }
    }
  }

  /// SvcParams out of order: port before alpn.
  private static let unordered: [UInt8] = [0, 1, 0, 0, 3, 0, 2, 0x20, 0xFB, 0, 1, 0, 3, 2, 0x68, 0x32]

  @Test(arguments: [(RecordType.txt, [UInt8]()), (.https, unordered)])
  func `comes back as it was, with RDATA that breaks a rule of its type`(type: RecordType, rdata: [UInt8]) throws {
    let asked = question { $0.type = type }
    var message = value().message
    message.questions = [Message.Entry(Question(name: name, type: type))]
    message.answers = [ResourceRecord(owner: name, type: type, ttl: 60, rdata: rdata)]
    let value = value { $0.message = message }
    for keys in [plain, sealed] {
      #expect(try read(value.octets(for: keys.answer(asked), keys), keys, asked) == value)
    }
  }

  @Test func `is refused with a record that cannot be read`() throws {
    var octets = try #require(written(value(), plain))
    // The last record is an A record: its length becomes 3.
    octets.removeLast()
    octets[octets.count - 4] = 3
    #expect(throws: FleetRejection.message) { try read(octets, plain) }
  }

  @Test func `is the wire message in the clear without a secret, and nothing readable with one`() throws {
    let label = Array("example".utf8)
    let (open, closed) = (try #require(written(value(), plain)), try #require(written(value(), sealed)))
    #expect(open.indices.contains { open[$0...].starts(with: label) })
    #expect(!closed.indices.contains { closed[$0...].starts(with: label) })
    #expect(open[0] == 1 && closed[0] == 1)
  }

  @Test func `cannot be moved to another name, or changed`() throws {
    let octets = try #require(written(value(), sealed))
    let other = question { $0.name = DomainName(text: "bank.example")! }
    #expect(throws: FleetRejection.seal) { try read(octets, sealed, other) }
    for index in octets.indices {
      var changed = octets
      changed[index] ^= 1
      #expect(throws: FleetRejection.self) { try read(changed, sealed) }
      #expect(throws: FleetRejection.self) { try read(Array(octets[..<index]), sealed) }
    }
  }

  @Test func `with a secret only sealed values count, and without one only plain ones`() throws {
    let body = try #require(written(value(), plain))
    #expect(throws: FleetRejection.seal) { try read(body, sealed) }
    #expect(throws: FleetRejection.seal) { try read(written(value(), sealed), plain) }
  }

  @Test func `each check refuses what it is for`() throws {
    let octets = try #require(written(value(), plain))
    #expect(throws: FleetRejection.size) { try read([UInt8](repeating: 1, count: 65_537), plain) }
    #expect(throws: FleetRejection.version) { try read([2] + octets.dropFirst(), plain) }
    #expect(throws: FleetRejection.version) { try read([], plain) }
    #expect(throws: FleetRejection.version) { try read([1, 2] + octets.dropFirst(2), plain) }
    for length in 2..<26 {
      #expect(throws: FleetRejection.self) { try read(Array(octets[..<length]), plain) }
    }
    #expect(throws: FleetRejection.message) { try read(octets.dropLast(), plain) }
    func refused(_ reason: FleetRejection, _ change: (inout FleetValue) -> Void) {
      #expect(throws: reason) { try read(written(value(change), plain), plain) }
    }
    refused(.message) { $0.message.header.qr = false }
    refused(.message) { $0.message.header.tc = true }
    refused(.question) { $0.message.questions = [] }
    refused(.question) { $0.message.questions = [Message.Entry(Question(name: name, type: .aaaa))] }
    refused(.question) {
      $0.message.questions = [Message.Entry(Question(name: DomainName(text: "x.example")!, type: .a))]
    }
    refused(.lifetime) { $0.stored = now + 1_001 }
    refused(.lifetime) { $0.stored = -1 }
    refused(.lifetime) { $0.expires = $0.stored }
    refused(.lifetime) { $0.expires = .max }
    refused(.expired) { $0.expires = now + 999 }
    #expect(try read(written(value { $0.expires = now + 1_000 }, plain), plain).expires == now + 1_000)
  }

  @Test func `rubbish is refused, and never more than that`() {
    var random = SeededGenerator(seed: testSeed)
    guard let good = written(value(), plain) else { return }
    for _ in 0..<20_000 {
      var octets = good
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        octets[Int.random(in: 0..<octets.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if Bool.random(using: &random) { octets.removeLast(Int.random(in: 0..<octets.count, using: &random)) }
      _ = try? read(octets, plain)
    }
  }

  @Test func `that does not fit is not shared`() {
    let records = (0..<4_000).map { number in
      ResourceRecord(owner: name, type: .aaaa, ttl: 60, rdata: Array(repeating: UInt8(number & 255), count: 16))
    }
    #expect(written(value { $0.message.answers = records }, sealed) == nil)
  }
}

@Suite struct `A value that was found` {
  private let found = FoundValue(value(), readAt: now + 10_500)

  @Test func `lives as long as is left of it and of its answer`() throws {
    #expect(try found.rest(longest: 60) == 39)
    #expect(try found.rest(longest: 3_600) == 39)
    // The provider may have taken 5 s.
    #expect(try found.rest(longest: 55) == 39)
    #expect(throws: FleetRejection.lifetime) { try found.rest(longest: 54) }
    let early = FoundValue(value { $0.stored = now }, readAt: now - 500)
    #expect(try early.rest(longest: 50) == 50)
    #expect(throws: FleetRejection.lifetime) { try early.rest(longest: 49) }
  }

  @Test func `has TTLs that are reduced by its age, but not below what is left of it`() {
    var records = value().message.answers
    for (ttl, left) in [(60, 39), (100, 79), (10, 39), (0, 39)] as [(UInt32, UInt32)] {
      records[0].ttl = ttl
      #expect(found.aged(records, rest: 39).map(\.ttl) == [left])
    }
  }
}
