// ResolverSubnetTests.swift -- client subnets (RFC 7871): what is sent upstream, what shares an answer, what is echoed.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverSubnetTests {
  let loop = SimulatedLoop()

  /// A provider whose address for a name is the third octet of the subnet that it gets.
  private func provider(_ policy: Configuration.ClientSubnet, scope: Int?) -> ScriptedUpstream {
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      let octet = question.clientSubnet.map { $0.address.octets[2] } ?? 0
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.\(octet)")
      if question.clientSubnet != nil { answer.scopePrefixLength = scope }
      return .answer(answer)
    }
    upstream.traits.clientSubnet = policy
    return upstream
  }

  private func question(_ subnet: String?, client: UInt16 = 1) -> ClientQuestion {
    ClientQuestion(name: "www.example.com", client: client, subnet: subnet.map { IPPrefix(text: $0)! })
  }

  private func told(_ upstream: ScriptedUpstream) -> [String?] {
    upstream.asked.map { $0.question.clientSubnet?.description }
  }

  @Test func `by default no subnet is sent upstream, and none is returned`() throws {
    let provider = provider(.none, scope: 24)
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer(question("203.0.7.0/24")).edns?.clientSubnet == nil)
    _ = try scene.answer(question("203.0.9.0/24"))
    _ = try scene.answer(question(nil))
    #expect(told(provider) == [nil])
  }

  @Test(arguments: ["198.51.5.0/24", "192.0.2.0/24", "198.51.100.0/24"])
  func `a fixed subnet is sent for all clients, shared by all, and not returned`(fixed: String) throws {
    let provider = provider(.fixed(IPPrefix(text: fixed)!), scope: 24)
    let scene = ResolverScene(on: loop, [provider])
    for asked in [nil, "203.0.7.0/24", fixed] {
      let message = try scene.answer(question(asked))
      #expect(message.edns?.options.isEmpty == true)
    }
    #expect(told(provider) == [fixed])
    loop.advance(by: .seconds(400))
    // The other way round: the first one to ask has a subnet of its own.
    for asked in ["203.0.7.0/24", fixed, nil] { #expect(try scene.answer(question(asked)).edns?.clientSubnet == nil) }
    #expect(told(provider) == [fixed, fixed])
  }

  @Test func `a client's subnet is sent with 24 bits, and its answer is cached for that subnet`() throws {
    let provider = provider(.fromClient, scope: 24)
    let scene = ResolverScene(on: loop, [provider])
    for _ in 0..<2 {
      let message = try scene.answer(question("203.0.7.99/32"))
      #expect(message.addresses == ["192.0.2.7"])
      let echoed = try #require(message.edns?.clientSubnet)
      #expect(echoed.prefix == IPPrefix(text: "203.0.7.99/32")!)
      #expect(echoed.scope == 24)
    }
    #expect(try scene.answer(question("203.0.7.0/24")).addresses == ["192.0.2.7"])
    #expect(told(provider) == ["203.0.7.0/24"])
    #expect(try scene.answer(question("203.0.9.0/24")).addresses == ["192.0.2.9"])
    #expect(try scene.answer(question(nil)).addresses == ["192.0.2.0"])
    #expect(told(provider) == ["203.0.7.0/24", "203.0.9.0/24", nil])
    // An answer to those who name no subnet is not for those who do.
    #expect(try scene.answer(question("203.0.11.0/24")).addresses == ["192.0.2.11"])
  }

  @Test func `different subnets in flight do not share a request, equal ones do`() {
    let provider = provider(.fromClient, scope: 24)
    let scene = ResolverScene(on: loop, [provider])
    for (client, subnet) in ["203.0.7.0/24", "203.0.7.128/25", "203.0.9.0/24", nil].enumerated() {
      scene.ask(question(subnet, client: UInt16(client)))
    }
    loop.advance(by: .seconds(1))
    #expect(told(provider) == ["203.0.7.0/24", "203.0.9.0/24", nil])
    #expect(
      scene.transactions.map { $0.replies[0].message.addresses } == [
        ["192.0.2.7"], ["192.0.2.7"], ["192.0.2.9"], ["192.0.2.0"],
      ])
  }

  @Test func `an answer with scope 0 serves all clients`() throws {
    let provider = provider(.fromClient, scope: 0)
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer(question("203.0.7.0/24")).edns?.clientSubnet?.scope == 0)
    #expect(try scene.answer(question("203.0.9.0/24")).edns?.clientSubnet?.scope == 0)
    #expect(try scene.answer(question(nil)).edns?.clientSubnet == nil)
    #expect(told(provider) == ["203.0.7.0/24"])
  }

  @Test(arguments: [nil, 24])
  func `an answer or denial for one subnet says so the first time, from each source`(scope: Int?) throws {
    var script: [ScriptedStep] = []
    let provider = ScriptedUpstream(on: loop) { _, _ in script.removeFirst() }
    provider.traits.clientSubnet = .fromClient
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.53")) }
    var (data, denial) = (
      HTTPDNSAnswer.addresses(name("a.example"), "192.0.2.1"), HTTPDNSAnswer(responseCode: .noError)
    )
    (data.scopePrefixLength, denial.scopePrefixLength) = (scope, scope)
    denial.isNegative = true
    script = [.answer(data), .answer(denial), .answer(.negative(.nxDomain, zone: name("example"))), .failure()]
    let scene = ResolverScene(on: loop, [provider], local: local)
    for asked in ["a.example", "b.example", "c.example", "d.example"] {
      for _ in 0..<2 {
        let message = try scene.answer(ClientQuestion(name: asked, client: 1, subnet: IPPrefix(text: "203.0.7.0/24")!))
        #expect(message.edns?.clientSubnet?.scope == 24, "\(asked)")
      }
    }
    #expect(provider.count == 4 && local.asked.count == 1)
  }

  /// A dialect, its reply with an address, and two subnets.
  private struct Service: CustomTestStringConvertible {
    let dialect: any Dialect
    let reply: String
    let subnets: [String]
    let transfers: Int

    var testDescription: String { "\(dialect) \(subnets)" }

    private static let ipv4 = ["203.0.7.0/24", "203.0.9.0/24"]
    private static let ipv6 = ["2001:db8:0:700::/56", "2001:db8:0:900::/56"]
    private static let account = Configuration.SecretAccount(id: "1", secret: Secret("secret"))
    private static let status = #"{"Status":0,"Question":{"name":"www.example.com","type":1},"#
    private static let json = status + #""Answer":[{"name":"www.example.com","type":1,"TTL":300,"data":"192.0.2.1"}]}"#

    static let all = [ipv4, ipv6].flatMap { subnets in
      [
        Service(
          dialect: UCloudDialect(account: account),
          reply: #"{"host":"www.example.com","ip_list":["192.0.2.1"],"ttl":300}"#, subnets: subnets, transfers: 1),
        Service(
          dialect: JDCloudDialect(account: account),
          reply: #"{"ret_code":0,"data":[{"domain":"www.example.com","ips":["192.0.2.1"],"ttl":300}]}"#,
          subnets: subnets, transfers: subnets == ipv6 ? 1 : 2),
        Service(
          dialect: JSONDialect(flavour: .cloudflare, path: "/dns-query"), reply: json, subnets: subnets, transfers: 1),
        Service(
          dialect: JSONDialect(flavour: .google, path: "/resolve"), reply: json, subnets: subnets, transfers: 2),
      ]
    }
  }

  @Test(arguments: Service.all)
  private func `an answer without the client's address is asked for once for all clients`(_ service: Service) throws {
    let scene = ProviderScene(
      on: loop, [ProviderScene.always(.json(service.reply))],
      .tested(name: "first", clientSubnet: .fromClient), dialect: service.dialect)
    let clients = ResolverScene(on: loop, [scene.provider])
    for subnet in service.subnets {
      let message = try clients.answer(question(subnet))
      #expect(message.addresses == ["192.0.2.1"])
      let scope = service.transfers == 1 ? 0 : IPPrefix(text: subnet)!.length
      #expect(message.edns?.clientSubnet?.scope == UInt8(scope))
    }
    #expect(scene.servers[0].sent.count == service.transfers)
  }

  @Test(arguments: [ResponseCode.noError, .nxDomain])
  func `an answer for every subnet that arrives after the listener's look-up serves other subnets`(
    code: ResponseCode
  ) throws {
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      var answer =
        code == .noError
        ? HTTPDNSAnswer.addresses(question.name, "192.0.2.1")
        : .negative(code, zone: name("example.com"))
      answer.scopePrefixLength = 0
      return .answer(answer)
    }
    upstream.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [upstream])
    scene.ask(question("203.0.7.0/24"))
    // Its look-up on the hot path misses, and the answer is cached before the resolver takes the query over.
    scene.takesOver = false
    let second = scene.ask(question("203.0.9.0/24", client: 2))
    loop.advance(by: .seconds(1))
    scene.resolver.assumeIsolated { $0.takeQueries() }
    let message = try scene.reply(second).message
    #expect(message.responseCode == code)
    #expect(message.edns?.clientSubnet?.scope == 0)
    #expect(told(upstream) == ["203.0.7.0/24"])
  }

  @Test func `a client subnet of /0 shares with clients without a subnet`() throws {
    let provider = provider(.fromClient, scope: 24)
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer(question("0.0.0.0/0")).addresses == ["192.0.2.0"])
    _ = try scene.answer(question(nil))
    _ = try scene.answer(question("::/0"))
    #expect(told(provider) == [nil])
  }

  @Test
  func `NXDOMAIN for a subnet applies to that subnet and type alone`()
    throws
  {
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      var answer =
        question.type == .a && question.clientSubnet?.address.octets[2] == 7
        ? HTTPDNSAnswer.addresses(question.name, "192.0.2.7") : .negative(.nxDomain, zone: name("example.com"))
      answer.scopePrefixLength = 24
      return .answer(answer)
    }
    upstream.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [upstream])
    #expect(try scene.answer(question("203.0.9.0/24")).responseCode == .nxDomain)
    #expect(try scene.answer(question("203.0.7.0/24")).responseCode == .noError)
    var other = question("203.0.9.0/24")
    other.type = .aaaa
    #expect(try scene.answer(other).responseCode == .nxDomain)
    other = question("203.0.7.0/24")
    other.type = .aaaa
    #expect(try scene.answer(other).responseCode == .noError)
    #expect(upstream.asked.count == 4)
  }

  @Test func `LocalDNS gets no subnet`() throws {
    let failing = ScriptedUpstream(on: loop) { _, _ in .failure() }
    failing.traits.clientSubnet = .fromClient
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "198.51.100.1")) }
    let scene = ResolverScene(on: loop, [failing], local: local)
    #expect(try scene.answer(question("203.0.7.0/24")).addresses == ["198.51.100.1"])
    #expect(local.asked.map(\.question.clientSubnet) == [nil])
  }
}
