// Turn.swift -- one question to one resolver: a datagram, the same once more, a connection.
//
// On the loop's thread only. A turn owns its sockets and its timer, which keep it alive until it has ended, at the latest
// at its deadline. All it learns about the resolver goes into the client's memory.
//
// A lost datagram should not cost the resolver its turn: after 400 ms the query is sent once more, from the same port
// and with the same ID, since equal queries in parallel would make spoofing easier (RFC 5452 section 5). To a resolver
// that has not shown yet that it supports EDNS, the second one goes without OPT record. After a second TCP is tried as
// well. Queries to which such a resolver objects, and those for which any objects to the form, are repeated without OPT
// record at once (RFC 6891 section 7).

import DNSWire
import EventLoop
import Glibc

/// A question and the bits that go with it.
struct PlainQuestion {
  var question: Question
  var dnssecOK = false
  var checkingDisabled = false

  func query(hasEDNS: Bool, id: UInt16? = nil) -> PreparedQuery {
    PreparedQuery(question, edns: hasEDNS ? EDNS(dnssecOK: dnssecOK) : nil, checkingDisabled: checkingDisabled, id: id)
  }
}

final class Turn {
  /// What comes of it.
  enum Report {
    /// A truncated answer has addresses; a better one may follow.
    case truncated(Message)
    /// The answer, NOERROR or NXDOMAIN. Nothing follows.
    case answer(Message)
    /// No answer, and the reason. Nothing follows.
    case failure(LocalDNSFailure)
  }

  private let client: LocalDNSClient
  private let asked: PlainQuestion
  private let resolver: PlainResolver
  private let manner: Manner
  private let begin: BootInstant
  private var end: BootInstant
  private var query: PreparedQuery
  private var datagrams: (any ServerSocket)?
  private var stream: (any ServerSocket)?
  /// Why the datagrams ended; nil while they have not.
  private var refusal: LocalDNSFailure?
  private var isTruncated = false
  private var isSign = false
  private let timer = OwnedTimer()
  /// Nil once the question is decided.
  private var report: ((Report) -> Void)?

  /// The second datagram and the connection come at these times, or earlier in a short turn.
  private static let second = Duration.milliseconds(400)
  private static let connection = Duration.seconds(1)
  /// A truncated answer waits so long for TCP: for less time than it is held.
  private static let longestConnection = Duration.milliseconds(900)
  /// A turn whose question is decided waits so long for a sign of life, counted from its begin.
  private static let sign = Duration.seconds(2)

  private var clock: any Loop { client.sockets.clock }

  /// - Parameter manner: by default what the client knows of the resolver.
  init(
    _ client: LocalDNSClient, _ asked: PlainQuestion, _ resolver: PlainResolver, _ manner: Manner? = nil,
    until end: BootInstant, _ report: @escaping (Report) -> Void
  ) {
    begin = client.sockets.clock.now
    let manner = manner ?? client.known.manner(toward: resolver, at: begin)
    (self.client, self.asked, self.resolver, self.manner, self.end) = (client, asked, resolver, manner, end)
    query = asked.query(hasEDNS: manner.hasEDNS)
    self.report = report
  }

  func start() {
    isSign = client.known.asks(resolver, asked.question, at: begin)
    guard manner.isOverTCP else { return sendDatagram() }
    connect(until: end)
    // What is remembered of the resolver may no longer be true.
    guard stream != nil, !resolver.isOverTCP else { return }
    wait(until: begin + Turn.connection) { [self] in trySendingDatagram() }
  }

  /// The question is decided. Goes on without a report if that may bring a sign of life, otherwise ends.
  func dismiss() {
    guard isSign, !isTruncated else { return close() }
    report = nil
    if client.known.isDemoted(resolver) { client.keep(self) }
    end = min(end, begin + Turn.sign)
    if let deadline = timer.deadline, deadline > end { wait(until: end) { [self] in timeIsOver() } }
  }

  /// Ends without a report.
  func close() {
    report = nil
    timer.cancel()
    datagrams?.close()
    stream?.close()
    (datagrams, stream) = (nil, nil)
    client.ended(self)
  }

  private func finish(_ outcome: Report) {
    let report = report
    close()
    report?(outcome)
  }

  private func wait(until deadline: BootInstant, _ action: @escaping () -> Void) {
    timer.set(at: min(deadline, end), on: clock, action)
  }

  private func timeIsOver() {
    client.counted.timeouts += 1
    // Otherwise it may be the name that takes its time.
    if stream != nil, isTruncated { client.known.isSilentOverTCP(resolver, at: clock.now) }
    finish(.failure(isTruncated ? .truncated : .timedOut))
  }

  // MARK: UDP

  /// Asks by UDP too, beside a connection over which nothing has come.
  private func trySendingDatagram() {
    guard clock.now < end else { return timeIsOver() }
    wait(until: end) { [self] in timeIsOver() }
    client.counted.datagramQueries += 1
    datagrams = try? client.sockets.open(to: resolver, overTCP: false) { [self] in happened($0, overTCP: false) }
    datagrams?.send(query.octets)
  }

  private func sendDatagram() {
    client.counted.datagramQueries += 1
    do throws(LocalDNSFailure) {
      datagrams = try client.sockets.open(to: resolver, overTCP: false) { [self] in happened($0, overTCP: false) }
    } catch { return finish(.failure(error)) }
    wait(until: begin + min(Turn.second, (end - begin) / 3)) { [self] in sendAgain() }
    datagrams?.send(query.octets)
  }

  private func sendAgain() {
    if manner.doubtsEDNS, query.hasEDNS { query = asked.query(hasEDNS: false, id: query.id) }
    let connection = begin + min(Turn.connection, (end - begin) * 2 / 3)
    wait(until: manner.mayConnect ? connection : end) { [self] in
      guard clock.now < end else { return timeIsOver() }
      connect(until: end)
    }
    datagrams?.send(query.octets)
  }

  // MARK: TCP

  private func connect(until deadline: BootInstant) {
    client.counted.streamQueries += 1
    wait(until: deadline) { [self] in timeIsOver() }
    do throws(LocalDNSFailure) {
      stream = try client.sockets.open(to: resolver, overTCP: true) { [self] in happened($0, overTCP: true) }
    } catch { return connectionFailed(error) }
    stream?.send(query.octets)
  }

  private func connectionFailed(_ reason: LocalDNSFailure) {
    stream = nil
    if !reason.isOwnLimit { client.known.failsTCP(resolver, at: clock.now) }
    if isTruncated { return finish(.failure(.truncated)) }
    if datagrams != nil { return }
    // What was remembered of the resolver is no longer true.
    guard resolver.isOverTCP || refusal != nil else { return sendDatagram() }
    finish(.failure(refusal ?? reason))
  }

  // MARK: Replies

  private func happened(_ event: SocketEvent, overTCP: Bool) {
    switch event {
    case .failure(let reason) where overTCP: connectionFailed(reason)
    case .failure(let reason):
      datagrams = nil
      refusal = reason
      if stream != nil { return }
      guard reason == .network(ECONNREFUSED), manner.mayConnect else { return finish(.failure(reason)) }
      connect(until: end)
    case .message(let octets): received(query.judge(octets), overTCP: overTCP)
    }
  }

  private func received(_ reply: PreparedQuery.ReplyMatch, overTCP: Bool) {
    if case .foreign = reply {
      client.counted.ignoredReplies += 1
      return
    }
    client.known.hears(resolver, overTCP: overTCP, at: clock.now)
    // A reply that was in flight while the machine slept is too old.
    guard !clock.hasSlept(since: begin, waitingFor: end - begin) else { return timeIsOver() }
    switch reply {
    case .foreign: break
    case .unusable(let fault): finish(.failure(.unusable(fault)))
    case .bareError(let code):
      guard isRepeatedWithoutEDNS(after: code, knowsEDNS: false) else { return finish(.failure(.bareError(code))) }
      repeatWithoutEDNS(overTCP: overTCP)
    case .truncated(let message): truncated(message, overTCP: overTCP)
    case .response(let message): answered(message, overTCP: overTCP)
    }
  }

  private func answered(_ message: Message, overTCP: Bool) {
    let code = message.responseCode
    if isRepeatedWithoutEDNS(after: code, knowsEDNS: message.edns != nil) { return repeatWithoutEDNS(overTCP: overTCP) }
    let isAnswer = code == .noError || code == .nxDomain
    learn(message, isAnswer: isAnswer)
    if overTCP, !isTruncated, !manner.isOverTCP { client.known.dropsUDP(resolver, at: clock.now) }
    if message.isReferral { return finish(.failure(.referral)) }
    if message.hasData(for: asked.question) { client.known.gives(resolver, asked.question.name) }
    finish(isAnswer ? .answer(message) : .failure(.responseCode(code, message.extendedError)))
  }

  private func truncated(_ message: Message?, overTCP: Bool) {
    isTruncated = true
    if let message {
      learn(message, isAnswer: true)
      let type = asked.question.type
      if type == .a || type == .aaaa, message.hasData(for: asked.question) { report?(.truncated(message)) }
    }
    datagrams?.close()
    datagrams = nil
    // Over TCP it means that the server itself has no complete response.
    guard !overTCP, manner.mayConnect, report != nil else { return finish(.failure(.truncated)) }
    let deadline = clock.now + Turn.longestConnection
    stream == nil ? connect(until: deadline) : wait(until: deadline) { [self] in timeIsOver() }
  }

  private func learn(_ message: Message, isAnswer: Bool) {
    if message.edns != nil || query.hasEDNS && isAnswer {
      client.known.knowsEDNS(resolver, at: clock.now)
    } else if manner.hasEDNS, isAnswer {
      client.known.lacksEDNS(resolver, at: clock.now)
    }
  }

  private func isRepeatedWithoutEDNS(after code: ResponseCode, knowsEDNS: Bool) -> Bool {
    guard query.hasEDNS, code != .noError else { return false }
    return code == .formErr || code == .notImp || manner.doubtsEDNS && !knowsEDNS && code != .nxDomain
  }

  private func repeatWithoutEDNS(overTCP: Bool) {
    query = asked.query(hasEDNS: false)
    guard overTCP else {
      client.counted.datagramQueries += 1
      datagrams?.send(query.octets)
      return
    }
    stream?.close()
    connect(until: end)
  }
}

extension Message {
  /// Whether the answer section has a record of the type in question, so that the response is not negative.
  func hasData(for question: Question) -> Bool { answers.contains { $0.type == question.type } }

  /// Whether it is a referral: NOERROR with NS records in the Authority section, but neither an answer nor an SOA
  /// record.
  fileprivate var isReferral: Bool {
    responseCode == .noError && !header.aa && answers.isEmpty && authorities.contains { $0.type == .ns }
      && !authorities.contains { $0.type == .soa }
  }

  /// Whether it is empty although its sender neither resolves for us nor has authority: no statement about the name.
  var isLame: Bool {
    responseCode == .noError && answers.isEmpty && !header.ra && !header.aa && !authorities.contains { $0.type == .soa }
  }
}
