// LocalDNSClientTests.swift -- the client against servers that answer, lie, keep silent and fall over.

import DNSWire
import EventLoop
import Glibc
import LocalDNS
import TestSupport
import Testing

private let question = Question(name: DomainName(text: "WWW.Example")!, type: .a)

/// A response to `query` with one address, or with the response code.
private func response(
  _ query: Message, _ code: ResponseCode = .noError, address: [UInt8] = [192, 0, 2, 1],
  _ change: (inout Message) -> Void = { _ in }
) -> [UInt8] {
  var message = query
  message.header.qr = true
  message.header.ra = true
  message.header.rcode = UInt8(code.rawValue)
  if code == .noError {
    message.answers = [ResourceRecord(owner: query.questions[0].question.name, type: .a, ttl: 60, rdata: address)]
  }
  change(&message)
  return try! message.compose()
}

extension LocalDNSClient {
  fileprivate func ask(
    _ servers: [SocketAddress], timeout: Duration = .seconds(5), dnssecOK: Bool = false, checkingDisabled: Bool = false,
    overTCP: Bool = false
  ) async -> Result<Message, LocalDNSFailure> {
    await ask(
      question, dnssecOK: dnssecOK, checkingDisabled: checkingDisabled,
      servers: servers.map { PlainResolver($0, isOverTCP: overTCP) }, timeout: timeout
    ).map(\.message).mapError(\.reason)
  }

  /// Asks over TCP alone. Unlike the connection after a truncated answer, this one has time, however slow the machine is.
  fileprivate func askOverTCP(_ server: ScriptedServer) async -> Result<Message, LocalDNSFailure> {
    await ask([server.address], timeout: .seconds(60), overTCP: true)
  }
}

extension Result where Success == Message, Failure == LocalDNSFailure {
  /// The address of the answer.
  fileprivate var address: [UInt8]? { (try? get())?.answers.first?.rdata }
  fileprivate var failure: LocalDNSFailure? { if case .failure(let reason) = self { reason } else { nil } }
}

/// Whether this process has a UDP socket that is connected to a server. Whether the port that the socket had is free says
/// nothing: another program may have it by then.
private func isAsked(_ server: SocketAddress) -> Bool {
  (0..<Int32(min(getdtablesize(), 65_536))).contains { descriptor in
    var (type, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == Int32(SOCK_DGRAM.rawValue)
      && SocketAddress(peerOf: descriptor) == server
  }
}

@Suite(.serialized) struct `The LocalDNS client` {
  @Test func `a question is asked in its own case, with EDNS, RD and the bits that were wanted`() throws {
    try onLoop { loop in
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([server.address]).address == [192, 0, 2, 1])
      #expect(await client.ask([server.address], dnssecOK: true, checkingDisabled: true).address == [192, 0, 2, 1])
      #expect(
        server.datagrams.map { $0.questions[0].question.name.octets } == [question.name.octets, question.name.octets])
      #expect(server.datagrams.allSatisfy { $0.header.rd && !$0.header.qr && $0.edns?.udpPayloadSize == 1232 })
      #expect(server.datagrams.map { $0.header.cd } == [false, true])
      #expect(server.datagrams.map { $0.edns?.dnssecOK } == [false, true])
      #expect(client.counters.datagramQueries == 2)
    }
  }

  @Test func `every query has an ID and a port of its own`() throws {
    try onLoop { loop in
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      for _ in 0..<64 { _ = await client.ask([server.address]) }
      #expect(Set(server.datagrams.map(\.id)).count > 60)
      #expect(Set(server.ports).count > 56)
      // A port that follows from the one before would be guessed: the differences vary as well.
      #expect(Set(zip(server.ports, server.ports.dropFirst()).map { Int($1) - Int($0) }).count > 50)
    }
  }

  @Test func `replies with a wrong ID are ignored and counted`() throws {
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop,
        onDatagram: { query in
          let wrong: [[UInt8]] = [response(query, address: [6, 6, 6, 6]) { $0.id ^= 1 }, [], [1], [1, 2, 3]]
          return wrong.map(ScriptedAction.reply) + [.reply(response(query))]
        })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([server.address]).address == [192, 0, 2, 1])
      #expect(client.counters.ignoredReplies == 4)
    }
  }

  @Test func `a reply with the right ID that cannot be used is a failure with its own reason`() throws {
    try onLoop { loop in
      let wrong: [(LocalDNSFailure, @Sendable (inout Message) -> Void)] = [
        (.unusable(.otherQuestion), { $0.questions[0].question.type = .aaaa }),
        (.unusable(.otherQuestion), { $0.questions[0].question.name = DomainName(text: "xww.example")! }),
        (.unusable(.otherQuestion), { $0.questions[0].qclass = RecordClass(rawValue: 3) }),
        (.unusable(.otherQuestion), { $0.questions = [] }),
        (.unusable(.otherQuestion), { $0.questions += $0.questions }),
        (.unusable(.noResponse), { $0.header.qr = false }),
        (.unusable(.noResponse), { $0.header.opcode = 4 }),
      ]
      let sound = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      for (reason, change) in wrong {
        let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0, .noError, change))] })
        #expect(await client.ask([server.address]).failure == reason)
        #expect(await client.ask([server.address, sound.address]).address == [192, 0, 2, 1])
      }
      #expect(client.counters.ignoredReplies == 0 && client.counters.timeouts == 0)
    }
  }

  @Test func `a reply in another case is the reply`() throws {
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop,
        onDatagram: { query in
          [.reply(response(query) { $0.questions[0].question.name = $0.questions[0].question.name.lowercased })]
        })
      #expect(await LocalDNSClient(loop: loop).ask([server.address]).address == [192, 0, 2, 1])
    }
  }

  @Test func `a reply from another port is never seen`() throws {
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop, onDatagram: { [.replyFromElsewhere(response($0, address: [6, 6, 6, 6])), .reply(response($0))] })
      let liar = ScriptedServer(on: loop, onDatagram: { [.replyFromElsewhere(response($0))] })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([server.address]).address == [192, 0, 2, 1])
      #expect(await client.ask([liar.address], timeout: .milliseconds(60)).failure == .timedOut)
      #expect(client.counters.ignoredReplies == 0)
    }
  }

  @Test func `a silent server is asked twice with one ID from one port`() throws {
    try onLoop { loop in
      let silent = ScriptedServer(on: loop)
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([silent.address], timeout: .milliseconds(100)).failure == .timedOut)
      // After a stall, the second one is sent at the end of the time, and arrives after it.
      #expect(await loop.until { silent.datagrams.count == 2 })
      guard silent.datagrams.count == 2 else { return }
      #expect(silent.datagrams[0].id == silent.datagrams[1].id)
      // Nothing has shown yet that it supports EDNS.
      #expect(silent.datagrams.map { $0.edns != nil } == [true, false])
      #expect(Set(silent.ports).count == 1)
      #expect(client.counters.timeouts == 1)
      #expect(client.counters.datagramQueries == 1)
    }
  }

  @Test func `a lost query is made up for by the second one`() throws {
    try onLoop { loop in
      var isFirst = true
      let server = ScriptedServer(
        on: loop,
        onDatagram: { query in
          defer { isFirst = false }
          return isFirst ? [] : [.reply(response(query))]
        })
      #expect(await LocalDNSClient(loop: loop).ask([server.address]).address != nil)
    }
  }

  @Test(arguments: [ResponseCode.servFail, .refused, .notImp, .formErr])
  func `a server that will not answer is passed over, and named if it was the last`(code: ResponseCode) throws {
    try onLoop { loop in
      let unwilling = ScriptedServer(on: loop, onDatagram: { [.reply(response($0, code))] })
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([unwilling.address, server.address]).address == [192, 0, 2, 1])
      #expect(await client.ask([unwilling.address]).failure == .responseCode(code))
      let explaining = ScriptedServer(
        on: loop,
        onDatagram: {
          let reports = [0, 9, 22].map { ExtendedErrorReport(code: ExtendedError(rawValue: $0)).option }
          return [.reply(response($0, code) { $0.edns = EDNS(options: reports) })]
        })
      let validation = ExtendedError(rawValue: 9)
      #expect(await client.ask([explaining.address]).failure == .responseCode(code, validation))
    }
  }

  @Test func `a name that does not exist is an answer`() throws {
    try onLoop { loop in
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0, .nxDomain))] })
      let result = await LocalDNSClient(loop: loop).ask([server.address])
      #expect((try? result.get())?.responseCode == .nxDomain)
    }
  }

  @Test func `a refused port and an unreachable address fail at once`() throws {
    try onLoop { loop in
      let descriptor = ScriptedServer.bound(SOCK_DGRAM, to: SocketAddress(text: "127.0.0.1:0")!)!
      let closed = ScriptedServer.name(of: descriptor)
      close(descriptor)
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([closed, server.address]).address == [192, 0, 2, 1])
      #expect(await client.ask([closed]).failure == .network(ECONNREFUSED))
      // Loopback's broadcast address: the kernel refuses to connect to it, with a network or without.
      #expect(await client.ask([SocketAddress(text: "127.255.255.255:53")!]).failure == .network(EACCES))
      #expect(await client.ask([]).failure == .noServer)
      #expect(client.counters.timeouts == 0)
    }
  }

  @Test func `a server that does not know EDNS is asked without, and may answer with a header alone`() throws {
    try onLoop { loop in
      for code in [ResponseCode.formErr, .notImp] {
        for hasQuestion in [true, false] {
          let server = ScriptedServer(
            on: loop,
            onDatagram: { query in
              guard query.edns != nil else { return [.reply(response(query))] }
              return [
                .reply(
                  response(query, code) {
                    $0.edns = nil
                    if !hasQuestion { $0.questions = [] }
                  })
              ]
            })
          #expect(await LocalDNSClient(loop: loop).ask([server.address]).address == [192, 0, 2, 1])
          #expect(server.datagrams.map { $0.edns != nil } == [true, false])
        }
      }
    }
  }

  @Test func `a cancelled task does not wait`() throws {
    try onLoop { loop in
      let silent = ScriptedServer(on: loop)
      let hanging = ScriptedServer(
        on: loop, onDatagram: { [.reply(response($0) { $0.header.tc = true })] }, onStream: { _ in [] })
      let client = LocalDNSClient(loop: loop)
      for server in [silent, hanging] {
        let address = server.address
        let task = loop.startTask { await client.ask([address], timeout: .seconds(60)) }
        #expect(await loop.until { server === hanging ? server.streams.count == 1 : server.ports.count == 1 })
        #expect(isAsked(address) == (server === silent))
        task.cancel()
        #expect(await task.value.failure == .cancelled)
        #expect(!isAsked(address))
      }
      #expect(hanging.streams.count == 1)
      let address = silent.address
      let task = loop.startTask { await client.ask([address], timeout: .seconds(60)) }
      task.cancel()
      #expect(await task.value.failure == .cancelled)
      #expect(await loop.until { hanging.connectionCount == 0 })
    }
  }

  @Test func `the socket is closed in every case`() throws {
    try onLoop { loop in
      let scripts: [@Sendable (Message) -> [ScriptedAction]] = [
        { [.reply(response($0))] }, { [.reply(response($0, .servFail))] }, { _ in [] },
        { [.reply(response($0) { $0.header.tc = true })] },
      ]
      let client = LocalDNSClient(loop: loop)
      for script in scripts {
        let server = ScriptedServer(on: loop, onDatagram: script, onStream: { [.reply(response($0))] })
        _ = await client.ask([server.address], timeout: .milliseconds(30))
        #expect(!server.ports.isEmpty && !isAsked(server.address))
        #expect(await loop.until { server.connectionCount == 0 })
      }
    }
  }
}

@Suite(.serialized) struct `The LocalDNS client over TCP` {
  private static func truncated(_ query: Message) -> [ScriptedAction] {
    [
      .reply(
        response(query) {
          $0.header.tc = true; $0.answers = []
        })
    ]
  }

  /// A response of about 40,000 octets.
  private static func large(_ query: Message) -> [UInt8] {
    response(query) { message in
      let owner = message.questions[0].question.name
      message.answers = (0..<2500).map { number in
        ResourceRecord(owner: owner, type: .a, ttl: 60, rdata: [10, 0, UInt8(number >> 8), UInt8(number & 255)])
      }
    }
  }

  @Test func `a truncated response is fetched over TCP from the same server`() throws {
    try onLoop { loop in
      let server = ScriptedServer(on: loop, onDatagram: Self.truncated, onStream: { [.reply(Self.large($0))] })
      let client = LocalDNSClient(loop: loop)
      let message = try? await client.ask([server.address]).get()
      #expect(message?.answers.count == 2500)
      #expect(message?.header.tc == false)
      #expect(server.streams.map { $0.questions[0].question.name.octets } == [question.name.octets])
      #expect(client.counters.streamQueries == 1)
    }
  }

  @Test func `a response that is cut in the middle of a record is only a reason for TCP`() throws {
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop, onDatagram: { query in [.reply(Array(response(query) { $0.header.tc = true }.dropLast(17)))] },
        onStream: { [.reply(response($0))] })
      #expect(await LocalDNSClient(loop: loop).ask([server.address]).address == [192, 0, 2, 1])
    }
  }

  @Test func `octets may come in any portions`() throws {
    try onLoop { loop in
      for cut in [1, 2, 3, 13, 30] {
        let server = ScriptedServer(
          on: loop,
          onStream: { query in
            let octets = framed(response(query))
            let starts = stride(from: 0, to: octets.count, by: cut)
            return [.portions(starts.map { Array(octets[$0..<min($0 + cut, octets.count)]) })]
          })
        #expect(await LocalDNSClient(loop: loop).askOverTCP(server).address == [192, 0, 2, 1], "\(cut)")
      }
    }
  }

  @Test func `any number of empty frames holds the loop for no time`() throws {
    try onLoop { loop in
      let zeros = Array(repeating: [UInt8](repeating: 0, count: 65_000), count: 20)
      let server = ScriptedServer(
        on: loop, onStream: { [.portions(zeros + [framed(response($0))])] })
      let watch = TurnWatch()
      watch.watch(loop)
      #expect(await LocalDNSClient(loop: loop).askOverTCP(server).address == [192, 0, 2, 1])
      // Debug code takes ten times as long.
      #expect(watch.longest < .milliseconds(50))
    }
  }

  @Test func `an answer of many records that is cut off is read twice at most`() throws {
    // The root, type 65280 of the class IN, a TTL of 0 and no data.
    let records = [[UInt8]](repeating: [0, 255, 0, 0, 1, 0, 0, 0, 0, 0, 0], count: 5_950).flatMap(\.self)
    nonisolated(unsafe) var sent: [UInt8] = []
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop,
        onStream: { query in
          var octets = Array(response(query) { $0.answers = [] })
          (octets[6], octets[7]) = (255, 255)
          octets += records
          sent = octets
          return [.reply(octets)]
        })
      let watch = TurnWatch()
      watch.watch(loop)
      _ = await LocalDNSClient(loop: loop).askOverTCP(server)
      let once = cpuTime { _ = try? Message.parse(sent) }
      #expect(watch.longest < .nanoseconds(once * 8))
    }
  }

  @Test func `frames that do not belong to the query are skipped`() throws {
    try onLoop { loop in
      let server = ScriptedServer(
        on: loop,
        onStream: { query in
          let wrong = response(query, address: [6, 6, 6, 6]) { $0.id ^= 1 }
          return [.portions([framed(wrong) + framed([]) + framed(response(query))])]
        })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.askOverTCP(server).address == [192, 0, 2, 1])
      #expect(client.counters.ignoredReplies == 2)
    }
  }

  @Test func `a connection that closes early or hangs lets the next server answer`() throws {
    try onLoop { loop in
      let closing = ScriptedServer(on: loop, onDatagram: Self.truncated, onStream: { _ in [.close] })
      let hanging = ScriptedServer(
        on: loop, onDatagram: Self.truncated, onStream: { [.portions([Array(framed(response($0)).dropLast())])] })
      let endless = ScriptedServer(on: loop, onDatagram: Self.truncated, onStream: { Self.truncated($0) })
      let server = ScriptedServer(on: loop, onDatagram: { [.reply(response($0))] })
      let client = LocalDNSClient(loop: loop)
      #expect(await client.ask([closing.address]).failure == .truncated)
      #expect(await client.ask([endless.address]).failure == .truncated)
      #expect(await client.ask([closing.address, server.address]).address == [192, 0, 2, 1])
      #expect(await client.ask([hanging.address, server.address]).address == [192, 0, 2, 1])
    }
  }
}
