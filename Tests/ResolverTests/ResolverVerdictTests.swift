// ResolverVerdictTests.swift -- a provider's verdict about a name is final for LocalDNS; without one, every upstream is asked.

import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverVerdictTests {
  private let loop = SimulatedLoop()

  private func refusal(_ code: ResponseCode, _ error: ExtendedError? = nil, after: Duration = .milliseconds(20))
    -> ScriptedStep
  {
    ScriptedStep(latency: after, result: .success(HTTPDNSAnswer(responseCode: code, extendedError: error)))
  }

  private func local() -> ScriptedLocalDNS {
    ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
  }

  @Test(arguments: 6...12)
  func `a validator's SERVFAIL is final, and the client gets its reason`(code: Int) throws {
    let error = ExtendedError(rawValue: UInt16(code))
    let first = ScriptedUpstream(on: loop) { _, _ in self.refusal(.servFail, error) }
    let second = ScriptedUpstream("second", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.66"))
    }
    let local = local()
    let scene = ResolverScene(on: loop, [first, second], local: local)
    let answer = try scene.answer("www.bogus.example")
    #expect(answer.responseCode == .servFail && answer.extendedError == error)
    #expect(second.asked.isEmpty && local.asked.isEmpty)
  }

  @Test(arguments: [ResponseCode.servFail, .refused, .formErr, .notImp])
  func `another error code leads to the next provider and never to LocalDNS`(code: ResponseCode) throws {
    let first = ScriptedUpstream(on: loop) { _, _ in self.refusal(code) }
    let second = ScriptedUpstream("second", on: loop) { question, _ in
      question.name == name("www.example.com") ? .answer(.addresses(question.name, "192.0.2.1")) : self.refusal(code)
    }
    let local = local()
    let scene = ResolverScene(on: loop, [first, second], local: local)
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    let answer = try scene.answer("www.other.example")
    #expect(answer.responseCode == .servFail && answer.extendedError == .other)
    #expect(local.asked.isEmpty)
  }

  @Test func `a provider's verdict keeps LocalDNS out, also if another one is down`() throws {
    for order in [[0, 1], [1, 0]] {
      let upstreams = [
        ScriptedUpstream("down", on: loop) { _, _ in .failure(.networkError, .nextServer) },
        ScriptedUpstream("reached", on: loop) { _, _ in self.refusal(.servFail) },
      ]
      let local = local()
      let scene = ResolverScene(on: loop, order.map { upstreams[$0] }, local: local)
      #expect(try scene.answer("www.example.com").responseCode == .servFail)
      #expect(local.asked.isEmpty)
    }
  }

  @Test(arguments: [Consequence.verdict, .limit])
  func `a verdict or a limit keeps LocalDNS out, also if the next provider is silent`(cause: Consequence) throws {
    let reached = ScriptedUpstream("reached", on: loop) { _, _ in
      cause == .verdict ? self.refusal(.servFail) : .failure(.other, cause)
    }
    let silent = ScriptedUpstream("silent", on: loop) { _, _ in .silence }
    let local = local()
    let scene = ResolverScene(on: loop, [reached, silent], local: local)
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    #expect(local.asked.isEmpty)
  }

  @Test func `a held LocalDNS answer is dropped after a provider's verdict`() throws {
    let reached = ScriptedUpstream("reached", on: loop) { _, _ in self.refusal(.servFail, after: .milliseconds(1100)) }
    let silent = ScriptedUpstream("silent", on: loop) { _, _ in .silence }
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(300))
    }
    let scene = ResolverScene(on: loop, [reached, silent], local: local)
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    #expect(local.asked.count == 1)
  }

  @Test func `a late final answer removes LocalDNS's cached answer`() throws {
    let silent = ScriptedUpstream("silent", on: loop) { _, _ in .silence }
    let late = ScriptedUpstream("late", on: loop) { _, _ in self.refusal(.servFail, after: .milliseconds(500)) }
    let local = local()
    let scene = ResolverScene(on: loop, [silent, late], local: local)
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    loop.advance(by: .milliseconds(500))
    // Only the first provider's silence and the second one's word are known of the name now.
    #expect(try scene.answer("www.example.com").extendedError == .cachedError)
    #expect(local.asked.count == 1)
  }

  @Test func `an ambiguous empty answer is not NODATA if another provider fails the name`() throws {
    let first = ScriptedUpstream(on: loop) { _, _ in
      .answer(HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true))
    }
    let second = ScriptedUpstream("second", on: loop) { _, _ in self.refusal(.servFail) }
    let local = local()
    let scene = ResolverScene(on: loop, [first, second], local: local)
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    #expect(local.asked.isEmpty)
  }

  /// Two providers, of which the first one has given no verdict for a while, so that the second one is asked beside it.
  private func sideBySide(_ first: ScriptedStep, _ second: ScriptedStep) throws -> (Message, local: Int) {
    let upstreams = [("first", first), ("second", second)].map { label, step in
      ScriptedUpstream(label, on: loop) { _, _ in step }
    }
    for number in 0..<5 { upstreams[0].patience.sent(DomainKey(value: UInt64(number)), askedAt: loop.now) }
    loop.advance(by: .seconds(2))
    let local = local()
    let message = try ResolverScene(on: loop, upstreams, local: local).answer("www.example.com")
    #expect(upstreams[1].asked[0].at - upstreams[0].asked[0].at == .milliseconds(150))
    return (message, local.asked.count)
  }

  private let data = HTTPDNSAnswer.addresses(name("www.example.com"), "192.0.2.1")

  @Test func `of providers that are asked side by side, data of one count more than another's refusal`() throws {
    let ambiguous = HTTPDNSAnswer(responseCode: .noError, isNegative: true, isEmptyAmbiguous: true)
    let late = ScriptedStep.answer(data, after: .milliseconds(100))
    for early in [
      .answer(ambiguous, after: .milliseconds(170)), refusal(.servFail, after: .milliseconds(190)),
      .failure(.networkError, .nextServer, after: .milliseconds(180)),
    ] as [ScriptedStep] {
      let (message, local) = try sideBySide(early, late)
      #expect(message.addresses == ["192.0.2.1"] && local == 0)
    }
    let (message, local) = try sideBySide(.answer(data, after: .milliseconds(200)), refusal(.refused))
    #expect(message.addresses == ["192.0.2.1"] && local == 0)
  }

  @Test func `of providers that are asked side by side, one's refusal counts if the other gives no verdict`() throws {
    for step in [ScriptedStep.silence, .failure(.networkError, .nextServer, after: .milliseconds(900))] {
      for isFirst in [true, false] {
        let refusal = refusal(.servFail, after: .milliseconds(160))
        let (message, _) = try isFirst ? sideBySide(refusal, step) : sideBySide(step, refusal)
        #expect(message.responseCode == .servFail && message.extendedError == .other)
      }
    }
  }

  @Test func `LocalDNS's NXDOMAIN carries no SOA of the root`() throws {
    let root = ResourceRecord(
      owner: .root, type: .soa, ttl: 86_400, rdata: [0, 0] + Array(repeating: 0, count: 16) + [0, 0, 14, 16])
    let local = ScriptedLocalDNS(on: loop) { _, _ in
      .answer(HTTPDNSAnswer(responseCode: .nxDomain, authorities: [root]))
    }
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.networkError, .nextServer) }
    let message = try ResolverScene(on: loop, [provider], local: local).answer("nas")
    #expect(message.responseCode == .nxDomain)
    #expect(message.authorities.map(\.owner) == [name("nas")])
  }

  @Test
  func `data without a representation is no empty answer: LocalDNS is asked, else it is SERVFAIL with the reason`()
    throws
  {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.notSupported, .nextUpstream) }
    let answer = try ResolverScene(on: loop, [provider]).answer("www.example.com")
    #expect(answer.responseCode == .servFail && answer.extendedError == .notSupported)
    #expect(try ResolverScene(on: loop, [provider], local: local()).answer("www.example.com").addresses == ["10.0.0.1"])
  }

  @Test func `LocalDNS's NXDOMAIN for a type that no provider carries says nothing about other types`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 60))
    }
    provider.unserved = [.mx]
    let local = ScriptedLocalDNS(on: loop) { _, _ in .answer(.negative(.nxDomain, zone: name("example"))) }
    let scene = ResolverScene(on: loop, [provider], local: local)
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(try scene.answer(ClientQuestion(name: "www.example.com", type: .mx)).responseCode == .nxDomain)
    loop.advance(by: .seconds(45))
    #expect(try scene.answer(ClientQuestion(name: "www.example.com", type: .mx)).responseCode == .nxDomain)
    loop.advance(by: .seconds(16))
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
  }

  @Test func `a name that no provider can carry is SERVFAIL with the reason, unless LocalDNS answers`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.notSupported, .nextUpstream) }
    provider.isForPlainNames = true
    let odd = #"two\032words.example.com"#
    let answer = try ResolverScene(on: loop, [provider]).answer(odd)
    #expect(answer.responseCode == .servFail && answer.extendedError == .notSupported)
    #expect(answer.authorities.isEmpty && provider.asked.isEmpty)
    // A type that it carries for no name is NODATA, as it is for other names.
    provider.unserved = [.txt]
    #expect(try ResolverScene(on: loop, [provider]).answer(odd, .txt).responseCode == .noError)
    let local = local()
    #expect(try ResolverScene(on: loop, [provider], local: local).answer(odd).responseCode == .noError)
    #expect(local.asked.count == 1)
  }

  @Test func `a final answer wins over a held LocalDNS answer, which is not cached`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in self.refusal(.servFail, after: .milliseconds(1500)) }
    let local = local()
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(2))
    let reply = try scene.reply(number)
    #expect(reply.after == .milliseconds(1500) && reply.message.responseCode == .servFail)
    #expect(local.asked.count == 1)
    #expect(try scene.answer("www.example.com").extendedError == .cachedError)
  }

  @Test func `a final answer wins over a later LocalDNS answer`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in self.refusal(.servFail, after: .milliseconds(1200)) }
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(400))
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(3))
    #expect(try scene.reply(number).after == .milliseconds(1200))
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
  }

  @Test func `a verdict and our own limits never lead to LocalDNS, everything else does, at the first query`() throws {
    for cause in Consequence.allCases {
      let leads = ![.verdict, .limit, .ours].contains(cause)
      let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.other, cause) }
      let local = local()
      let scene = ResolverScene(on: loop, [provider], local: local)
      #expect(try scene.answer("www.example.com").responseCode == (leads ? .noError : .servFail), "\(cause)")
      #expect(local.asked.isEmpty == !leads)
    }
  }

  @Test func `a provider that is silent about a name leaves it to LocalDNS`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    let scene = ResolverScene(on: loop, [provider], local: local())
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
  }
}
