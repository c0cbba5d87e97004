// SharedTransfer.swift -- a transfer whose result several callers wait for, each until its own deadline.
//
// Resolver's loop only.

import EventLoop
import FairShares

/// A transfer for several questions in flight: both address families of a name.
final class SharedTransfer: QuestionInFlight, QuestionCarrier {
  private let loop: any Loop
  private let waiters: Waiters
  private var outcome: Result<ProviderReplies, UpstreamFailure>?
  private var asking: [any QuestionInFlight]
  private var carrier: (any QuestionCarrier)?

  init(for asking: any QuestionInFlight, on loop: any Loop) {
    self.asking = [asking]
    self.loop = loop
    waiters = Waiters(on: loop)
  }

  var client: ClientKey { asking[0].client }
  var domain: DomainKey { asking[0].domain }
  var startedAt: BootInstant { asking[0].startedAt }
  /// Whether any caller still wants another server to be tried.
  var isWanted: Bool { asking.contains { $0.isWanted } }

  func gotConnection() { for question in asking { question.gotConnection() } }

  func isCarried(by carrier: any QuestionCarrier) {
    self.carrier = carrier
    for question in asking.dropFirst() { carrier.isJoined(by: question.client) }
    for question in asking { question.isCarried(by: self) }
  }

  func wasCarried(by carrier: any QuestionCarrier) {
    for question in asking { question.wasCarried(by: self) }
    self.carrier = nil
  }

  var isQueued: Bool { carrier?.isQueued ?? false }

  /// Whether all its questions have been answered, so that it may end to make room: no other one may wait for it.
  var hasNoClients: Bool { asking.allSatisfy { $0.hasNoClients } }

  func isJoined(by client: ClientKey) { carrier?.isJoined(by: client) }

  func isLate() {
    if hasNoClients { carrier?.isLate() }
  }

  /// Adds a question that waits for the same transfer.
  func join(_ question: any QuestionInFlight) {
    asking.append(question)
    guard let carrier else { return }
    carrier.isJoined(by: question.client)
    question.isCarried(by: self)
  }

  /// Ends the transfer and resumes all callers.
  func end(_ outcome: Result<ProviderReplies, UpstreamFailure>) {
    loop.assertCurrent()
    self.outcome = outcome
    waiters.resumeAll()
  }

  /// Waits for the result of the transfer; nil if the transfer has not ended by `deadline`.
  func result(by deadline: BootInstant) async -> Result<ProviderReplies, UpstreamFailure>? {
    loop.assertCurrent()
    await waiters.wait(atMost: deadline - loop.now) { outcome == nil }
    return outcome
  }
}
