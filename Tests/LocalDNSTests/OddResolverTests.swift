// OddResolverTests.swift -- through every kind of odd resolver, the same names have the same answers.

import DNSWire
import EventLoop
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import LocalDNS

/// A client, and the resolvers of one kind.
private struct Scene {
  let loop = SimulatedLoop()
  let laboratory: Laboratory
  let client: LocalDNSClient
  let resolvers: [PlainResolver]

  init(_ kind: LabKind) {
    laboratory = Laboratory(on: loop)
    client = LocalDNSClient(over: laboratory)
    resolvers = kind.setUp(in: laboratory)
  }

  /// The answer to a question, and how long it took.
  func ask(
    _ question: Question, dnssecOK: Bool = false, timeout: Duration = .milliseconds(4400)
  ) -> (result: Result<LocalDNSAnswer, UnansweredQuestion>, after: Duration) {
    let begin = loop.now
    let result = loop.run { [client, resolvers] in
      await client.ask(
        question, dnssecOK: dnssecOK, checkingDisabled: false, servers: resolvers, timeout: timeout)
    }
    return (result, loop.now - begin)
  }
}

/// What a client sees of an answer.
private struct Seen: Equatable {
  var code: ResponseCode
  var answers: [ResourceRecord]
  var authorities: [ResourceRecord]

  init?(_ result: Result<LocalDNSAnswer, UnansweredQuestion>) {
    guard case .success(let answer) = result, !answer.isTruncated else { return nil }
    code = answer.message.responseCode
    answers = answer.message.answers
    authorities = answer.message.authorities
  }
}

@Suite struct `Odd resolvers` {
  @Test(arguments: LabKind.all) func `have the same answers as a sound one`(kind: LabKind) throws {
    let (scene, sound) = (Scene(kind), Scene(.sound))
    for question in LabZone.usualQuestions {
      let (result, time) = scene.ask(question)
      let right = try #require(Seen(sound.ask(question).result))
      #expect(Seen(result) == right, "\(question)")
      // What is remembered of the resolvers changes no answer.
      let again = scene.ask(question, dnssecOK: true)
      #expect(Seen(again.result) == right, "\(question)")
      #expect(time <= (kind.isPrompt ? .milliseconds(100) : .milliseconds(2200)), "\(question)")
    }
    scene.loop.advance(by: .seconds(5))
    #expect(scene.laboratory.openSockets == 0)
  }

  @Test(arguments: LabKind.all) func `have them within the time of a fallback`(kind: LabKind) throws {
    let question = LabZone.usualQuestions[0]
    let (result, time) = Scene(kind).ask(question, timeout: .milliseconds(1500))
    #expect(Seen(result) == Seen(Scene(.sound).ask(question).result))
    #expect(time < .milliseconds(1500))
  }

  @Test(arguments: LabKind.all) func `cost no time from the second question on if they are only odd`(kind: LabKind) {
    let scene = Scene(kind)
    for name in 0..<3 { _ = scene.ask(Question(name: DomainName(text: "n\(name).example")!, type: .txt)) }
    scene.loop.advance(by: .seconds(3))
    _ = scene.ask(Question(name: DomainName(text: "n4.example")!, type: .a))
    let (result, time) = scene.ask(LabZone.usualQuestions[0])
    #expect(Seen(result) != nil)
    let isSlow = kind.description.contains("slow") || kind.description.contains("loses")
    #expect(time <= (isSlow ? .milliseconds(700) : .milliseconds(40)), "\(time)")
  }
}
