// ResolverReplyTests.swift -- answers over real sockets: through the listener's socket, back to the client.

import CSocket
import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import Listener
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverReplyTests {
  @Test(arguments: ["127.0.0.1:0", "[::1]:0"])
  func `an answer leaves the socket that was asked and arrives where the query came from`(text: String) throws {
    let (listener, address) = try #require(bound(text))
    defer { close(listener) }
    let (client, clientAddress) = try #require(bound(text))
    defer { close(client) }
    // The kernel then discards what comes from anywhere else.
    #expect(address.withSockaddr { connect(client, .init(__sockaddr__: $0), $1) } == 0)
    let queries = ClientQueries(capacity: 2)
    let outbox = UDPOutbox(responseSize: 1232 + ResponseWriter.overhead)
    let replies = ReplySender(queries, on: SimulatedLoop(), maxUDPPayload: 1232) {
      outbox.add($0, through: $1, to: $2)
    }
    let message = try Message.query(Question(name: name("WWW.example.com"), type: .a), id: 77, edns: EDNS()).compose()
    var query = Query()
    _ = QueryReader.read(message.span, into: &query)
    let slot = queries.take()
    queries.fill(slot, query, of: message, over: .udp, route: 0, rule: 0, receivedAt: 0, descriptor: listener)
    queries.peer(slot).pointee = datagram_peer()
    queries.peer(slot).pointee.address = clientAddress.storage
    queries.peer(slot).pointee.length = clientAddress.length
    let answer = try #require(
      AnswerPolicy(ttl: ResolverScene.bounds).finish(
        .addresses(name("www.example.com"), "192.0.2.1"),
        to: HTTPDNSQuestion(name: name("www.example.com"), type: .a)))
    replies.send(answer, to: slot)
    outbox.flush()
    #expect(outbox.refused == 0)
    #expect(queries.inUse == 0)

    var octets = [UInt8](repeating: 0, count: 1500)
    let count = recv(client, &octets, octets.count, 0)
    try #require(count > 0)
    let reply = try Message.parse(Array(octets[..<count]))
    #expect(reply.id == 77)
    #expect(reply.questions[0].question.name.octets == name("WWW.example.com").octets)
    #expect(reply.addresses == ["192.0.2.1"])
  }

  @Test func `a peer that cannot be reached is counted, and its slot is free again`() throws {
    let (listener, _) = try #require(bound("127.0.0.1:0"))
    defer { close(listener) }
    let queries = ClientQueries(capacity: 1)
    let outbox = UDPOutbox(responseSize: 1232 + ResponseWriter.overhead)
    let replies = ReplySender(queries, on: SimulatedLoop(), maxUDPPayload: 1232) {
      outbox.add($0, through: $1, to: $2)
    }
    let slot = queries.take()
    let message = try Message.query(Question(name: name("www.example.com"), type: .a), id: 1).compose()
    var query = Query()
    _ = QueryReader.read(message.span, into: &query)
    queries.fill(slot, query, of: message, over: .udp, route: 0, rule: 0, receivedAt: 0, descriptor: listener)
    queries.peer(slot).pointee = datagram_peer()
    // Port 0: the kernel refuses it.
    let nowhere = SocketAddress(octets: [127, 0, 0, 1], port: 0)!
    queries.peer(slot).pointee.address = nowhere.storage
    queries.peer(slot).pointee.length = nowhere.length
    replies.send(UpstreamFailure(.networkError, "test", .nextServer), to: slot)
    outbox.flush()
    #expect(outbox.refused == 1)
    #expect(queries.inUse == 0)
  }

  /// A socket on a free port and its address. What is sent over loopback is there at once.
  private func bound(_ text: String) -> (descriptor: Int32, address: SocketAddress)? {
    let descriptor = SocketAddress(text: text)!.withSockaddr { datagram_socket($0, $1, 0) }
    guard descriptor >= 0 else { return nil }
    return SocketAddress(boundTo: descriptor).map { (descriptor, $0) }
  }
}
