// LabKind.swift -- odd resolvers as they are met: each kind still allows every answer.

import DNSWire
import EventLoop
import Glibc
import LocalDNS

/// What a sound resolver says.
package typealias Responder = @Sendable (LabQuery) -> Message

/// One resolver with its address, or several of which an earlier one is odd.
package struct LabKind: Sendable, CustomStringConvertible {
  package let description: String
  private let build: @Sendable (@escaping Responder) -> [LabServer]
  /// Whether its resolvers are asked over TCP only.
  private var isOverTCP = false
  /// Whether no answer takes longer than a resolver's usual time.
  package private(set) var isPrompt = false

  private init(
    _ description: String, isPrompt: Bool = false, isOverTCP: Bool = false,
    _ build: @escaping @Sendable (@escaping Responder) -> [LabServer]
  ) {
    (self.description, self.isPrompt, self.isOverTCP, self.build) = (description, isPrompt, isOverTCP, build)
  }

  /// The kind with that description; nil if it is unknown.
  package init?(_ description: String) {
    guard let kind = LabKind.all.first(where: { $0.description == description }) else { return nil }
    self = kind
  }

  /// Puts the kind's resolvers into a laboratory.
  ///
  /// - Parameters:
  ///   - latency: the time that a resolver usually takes.
  ///   - responder: what a sound one says.
  /// - Returns: them in order.
  package func setUp(
    in laboratory: Laboratory, latency: Duration = .milliseconds(10),
    _ responder: @escaping Responder = { LabZone.usual.response(to: $0) }
  ) -> [PlainResolver] {
    let servers = build(responder)
    let resolvers = servers.indices.map {
      PlainResolver(SocketAddress(text: "192.0.2.\($0 + 1):53")!, isOverTCP: isOverTCP)
    }
    for (resolver, server) in zip(resolvers, servers) {
      laboratory.servers[resolver.address] = LabServer(latency: latency, server.habit)
    }
    return resolvers
  }

  /// One resolver. `habit` returns nil for what it answers as it should.
  private static func one(
    _ description: String, isPrompt: Bool = false, isOverTCP: Bool = false,
    _ habit: @escaping @Sendable (LabQuery, Message) -> [LabAction]?
  ) -> LabKind {
    LabKind(description, isPrompt: isPrompt, isOverTCP: isOverTCP) { responder in
      [
        LabServer { query in
          let response = responder(query)
          return habit(query, response) ?? [.reply(response)]
        }
      ]
    }
  }

  /// An odd resolver before a sound one.
  private static func first(
    _ description: String, isPrompt: Bool = true, _ habit: @escaping @Sendable (LabQuery, Message) -> [LabAction]?
  ) -> LabKind {
    let odd = one(description, habit)
    return LabKind(description, isPrompt: isPrompt) { odd.build($0) + sound.build($0) }
  }

  /// The resolver as it should be.
  package static let sound = one("sound", isPrompt: true) { _, _ in nil }

  /// All kinds.
  package static let all: [LabKind] =
    [
      sound,
      one("slow") { _, response in [.after(.milliseconds(700), .reply(response))] },
      one("loses every first datagram") { query, _ in !query.overTCP && query.count % 2 == 0 ? [] : nil },
      one("drops queries with EDNS") { query, _ in query.hasEDNS ? [] : nil },
      one("asked over TCP only", isPrompt: true, isOverTCP: true) { query, _ in query.overTCP ? nil : [] },
      one("drops UDP") { query, _ in query.overTCP ? nil : [] },
      one("refuses UDP", isPrompt: true) { query, _ in query.overTCP ? nil : [.failure(.network(ECONNREFUSED))] },
      one("truncates all over UDP", isPrompt: true) { query, response in
        guard !query.overTCP else { return nil }
        var response = response
        response.header.tc = true
        (response.answers, response.authorities) = ([], [])
        return [.reply(response)]
      },
      one("cuts long datagrams off without TC", isPrompt: true) { query, response in
        guard !query.overTCP, let octets = try? response.compose(), octets.count > 60 else { return nil }
        return [.octets(Array(octets[..<60]))]
      },
      one("sends half a header", isPrompt: true) { query, response in
        query.overTCP ? nil : [.octets(Array(Laboratory.octets(response, to: query)[..<6]))]
      },
      one("replies with wrong IDs first", isPrompt: true) { query, response in
        var wrong = response
        wrong.id ^= 1
        return [.reply(wrong), .reply(response)]
      },
    ]
    + [ResponseCode.formErr, .notImp, .servFail, .refused].map { code in
      one("answers \(code) to EDNS", isPrompt: true) { query, _ in
        guard query.hasEDNS else { return nil }
        var response = query.response(code)
        response.edns = nil
        return [.reply(response)]
      }
    }
    + [ResponseCode.formErr, .notImp, .servFail].map { code in
      one("answers EDNS with a header of \(code)", isPrompt: true) { query, _ in
        query.hasEDNS ? [.octets(header(of: query, code))] : nil
      }
    }
    + [
      one("answers FORMERR with EDNS to EDNS", isPrompt: true) { query, _ in
        query.hasEDNS ? [.reply(query.response(.formErr))] : nil
      },
      first("the first is silent", isPrompt: false) { _, _ in [] },
      first("the first drops all types but A", isPrompt: false) { query, _ in query.question.type == .a ? nil : [] },
      first("the first is slow", isPrompt: false) { _, response in [.after(.milliseconds(600), .reply(response))] },
      first("the first refuses connections and datagrams") { _, _ in [.failure(.network(ECONNREFUSED))] },
      first("the first has no route") { _, _ in [.failure(.network(ENETUNREACH))] },
      first("the first refers to others") { query, _ in
        var referral = query.response()
        referral.header.ra = false
        let server = DomainName(text: "ns.example")!
        referral.authorities = [ResourceRecord(owner: server, type: .ns, ttl: 60, rdata: server.octets)]
        return [.reply(referral)]
      },
      first("the first is lame") { query, _ in
        var empty = query.response()
        empty.header.ra = false
        return [.reply(empty)]
      },
      first("the first answers another question") { query, response in
        var other = response
        other.questions[0].question.name = DomainName(text: "other.example")!
        return [.reply(other)]
      },
      first("the first sends queries back") { query, _ in [.reply(query.message)] },
      first("the first breaks the rules of names") { query, response in
        // The first owner's pointer leads forwards.
        var octets = header(of: query, .noError, questions: 1, answers: 1)
        octets += query.question.name.octets + [0, UInt8(query.question.type.rawValue & 0xFF), 0, 1]
        return [.octets(octets + [0xFF, 0xFF, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4])]
      },
      first("the first breaks a record that is not needed") { query, response in
        // An AAAA record of four octets at the end of the additional section.
        var octets = Laboratory.octets(response, to: query)
        octets[11] += 1
        return [.octets(octets + [0, 0, 28, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4])]
      },
      first("the first truncates and refuses TCP") { query, response in
        guard !query.overTCP else { return [.failure(.network(ECONNREFUSED))] }
        var response = response
        response.header.tc = true
        (response.answers, response.authorities) = ([], [])
        return [.reply(response)]
      },
    ]
    + [ResponseCode.nxDomain, .refused, .servFail, .notImp].map { code in
      first("the first answers with a header of \(code)") { query, _ in [.octets(header(of: query, code))] }
    }
    + [ResponseCode.refused, .servFail, ResponseCode(rawValue: 9)].map { code in
      first("the first answers \(code)") { query, _ in [.reply(query.response(code))] }
    }

  /// A response of a header alone.
  package static func header(
    of query: LabQuery, _ code: ResponseCode, questions: UInt8 = 0, answers: UInt8 = 0
  ) -> [UInt8] {
    let id = query.message.id
    return [UInt8(id >> 8), UInt8(id & 0xFF), 0x81, 0x80 | UInt8(code.rawValue), 0, questions, 0, answers, 0, 0, 0, 0]
  }
}
