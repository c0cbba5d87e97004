// ResolverFinalityTests.swift -- what a reachable provider has said about a name is final: LocalDNS says nothing better.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverFinalityTests {
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

  @Test func `a reachable provider's failure keeps LocalDNS out, also if another one is down`() throws {
    for order in [[0, 1], [1, 0]] {
      let upstreams = [
        ScriptedUpstream("down", on: loop) { _, _ in .failure(.networkError, .server) },
        ScriptedUpstream("reached", on: loop) { _, _ in self.refusal(.servFail) },
      ]
      let local = local()
      let scene = ResolverScene(on: loop, order.map { upstreams[$0] }, local: local)
      #expect(try scene.answer("www.example.com").responseCode == .servFail)
      #expect(local.asked.isEmpty)
    }
  }

  @Test(arguments: [Blame.answer, .ourselves])
  func `a reachable provider's failure keeps LocalDNS out, also if the next one is silent`(blame: Blame) throws {
    let reached = ScriptedUpstream("reached", on: loop) { _, _ in
      blame == .answer ? self.refusal(.servFail) : .failure(.other, blame)
    }
    let silent = ScriptedUpstream("silent", on: loop) { _, _ in .silence }
    let local = local()
    let scene = ResolverScene(on: loop, [reached, silent], local: local)
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    #expect(local.asked.isEmpty)
  }

  @Test func `a held LocalDNS answer is dropped after a reachable provider's failure`() throws {
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
    loop.advance(by: .seconds(1))
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

  @Test func `LocalDNS's NXDOMAIN carries no SOA of the root`() throws {
    let root = ResourceRecord(
      owner: .root, type: .soa, ttl: 86_400, rdata: [0, 0] + Array(repeating: 0, count: 16) + [0, 0, 14, 16])
    let local = ScriptedLocalDNS(on: loop) { _, _ in
      .answer(HTTPDNSAnswer(responseCode: .nxDomain, authorities: [root]))
    }
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.networkError, .server) }
    let message = try ResolverScene(on: loop, [provider], local: local).answer("nas")
    #expect(message.responseCode == .nxDomain)
    #expect(message.authorities.map(\.owner) == [name("nas")])
  }

  @Test func `data without a representation is SERVFAIL with the reason, not an empty answer`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.notSupported, .question) }
    let local = local()
    let scene = ResolverScene(on: loop, [provider], local: local)
    let answer = try scene.answer("www.example.com")
    #expect(answer.responseCode == .servFail && answer.extendedError == .notSupported)
    #expect(local.asked.isEmpty)
  }

  @Test func `a name that no provider can carry is SERVFAIL with the reason, unless LocalDNS answers`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.notSupported, .question) }
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

  @Test func `our own limits never lead to LocalDNS, an exhausted unit budget does`() throws {
    for (blame, leads) in [(Blame.ourselves, false), (.account, true), (.server, true), (.network, true)] {
      let provider = ScriptedUpstream(on: loop) { _, _ in .failure(.other, blame) }
      let local = local()
      let scene = ResolverScene(on: loop, [provider], local: local)
      #expect(try scene.answer("www.example.com").responseCode == (leads ? .noError : .servFail), "\(blame)")
      #expect(local.asked.isEmpty == !leads)
    }
  }

  @Test func `a provider that is silent about a name leaves it to LocalDNS`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    let scene = ResolverScene(on: loop, [provider], local: local())
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
  }
}
