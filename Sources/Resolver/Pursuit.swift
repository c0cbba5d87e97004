// Pursuit.swift -- one question under way upstream, and everybody who waits for its answer.

import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Upstreams

/// The octets of a cache key as a value: what makes two questions equal.
struct QuestionKey: Hashable, Sendable {
  let octets: [UInt8]
  /// The cache's hash of them.
  let keyedHash: UInt64

  init(_ key: CacheKey) {
    octets = Array(UnsafeBufferPointer(start: key.octets, count: key.length))
    keyedHash = key.hash
  }

  /// Calls `body` with the key in the form that the cache takes.
  func withCacheKey<Value>(_ body: (CacheKey) -> Value) -> Value {
    octets.withUnsafeBufferPointer { buffer in
      body(CacheKey(octets: buffer.baseAddress!, length: buffer.count, hash: keyedHash))
    }
  }

  static func == (left: QuestionKey, right: QuestionKey) -> Bool {
    left.keyedHash == right.keyedHash && left.octets == right.octets
  }

  func hash(into hasher: inout Hasher) { hasher.combine(keyedHash) }
}

/// What came of a question.
struct Outcome {
  var result: Result<FinishedAnswer, UpstreamFailure>
  var source: AnswerSource
  /// Why there is no answer; nil where there is one.
  var failure: UpstreamFailure? { if case .failure(let failure) = result { failure } else { nil } }

  /// Forgets for which addresses the answer holds.
  mutating func dropScope() {
    guard case .success(var answer) = result else { return }
    answer.scope = nil
    result = .success(answer)
  }
}

/// A question under way. Resolver's loop only: timers and tasks there carry it about.
final class Pursuit: @unchecked Sendable {
  /// What makes it equal to others.
  let key: QuestionKey
  /// The question, as upstreams get it.
  let question: HTTPDNSQuestion
  /// Whom it may ask: as the configuration was when it began.
  let service: Service
  /// Its route in that.
  let route: Route
  /// The parts of its key beside the name and the subnet.
  let scope: CacheScope
  /// The client's subnet where it is part of the key, as the listener read it.
  let subnet: QueryClientSubnet
  /// Whose name is asked for.
  let domain: DomainKey
  /// The cache's epoch when it began: an answer that was asked for on another network counts as one of that.
  let epoch: UInt32
  /// The network whose LocalDNS was asked last; before that, the one that it began on.
  var network: UInt32 = 0
  /// When it began; of a refresh that clients have joined since, when they did.
  var startedAt: BootInstant
  /// When the last attempt began: a client that asks again a second later may start another.
  var lastAttempt: BootInstant
  /// Attempts that run at present.
  var attempts = 0
  /// Clients that wait, by the slots of their queries.
  var slots: [Int] = []
  /// Those of them that came over UDP, to know who asks again.
  var askers = Askers()
  /// Its place among those that are in flight; nil where it has none, or none any more.
  var place: PlaceShares<Pursuit>.Place?
  /// Whether somebody else has its place, and its transfers have not ended yet: it asks nobody else.
  var isDisplaced = false
  /// Callers inside the program that wait.
  var continuations: [CheckedContinuation<ResolvedAnswer, Never>] = []
  /// The next step that time brings: asking LocalDNS as well, giving its answer, giving up.
  var timer: LoopTimer?
  /// Whether the clients have been answered.
  var isAnswered = false
  /// Whether that was by an upstream's answer, and not with stale data or a failure.
  var hasAnswer = false
  /// Whether it finds out whether a provider is back: then one that is down is asked all the same.
  var isTrial = false
  /// Whether a provider has said something final that is no answer: LocalDNS's comes too late.
  var isDecided = false
  /// An answer that is given unless a better one comes in time: LocalDNS's while a provider is under way, or a provider's
  /// empty one while LocalDNS is.
  var held: Outcome?
  /// When `held` is given at the latest; nil for the last moment.
  var heldUntil: BootInstant?
  /// When stale data is given for want of better; nil where there is none.
  var staleAt: BootInstant?
  /// Whether nobody waits: what is kept shall be fetched anew, and a failure does no harm.
  var isRefresh = false
  /// What the schedule of refreshes will remember of the entry.
  var heat: UInt32 = 0
  /// Hits that count as the entry's own.
  var hits: UInt32 = 0
  /// Whether LocalDNS has been asked.
  var hasAskedLocal = false
  /// Whether LocalDNS is being asked.
  var isAskingLocal = false
  /// What has led on to the next one who was asked, for people.
  private(set) var trail: [String] = []

  init(
    key: QuestionKey, question: HTTPDNSQuestion, _ service: Service, _ route: Route, scope: CacheScope,
    subnet: QueryClientSubnet, domain: DomainKey, epoch: UInt32, startedAt: BootInstant
  ) {
    self.key = key
    self.question = question
    self.service = service
    self.route = route
    self.scope = scope
    self.subnet = subnet
    self.domain = domain
    self.epoch = epoch
    self.startedAt = startedAt
    lastAttempt = startedAt
  }

  private static let longestTrail = 16

  /// Remembers why somebody else is asked.
  func trace(_ step: @autoclosure () -> String) {
    // Only who waits inside the program reads it.
    if !continuations.isEmpty, trail.count < Pursuit.longestTrail { trail.append(step()) }
  }

  /// Remembers several steps.
  func trace(_ steps: @autoclosure () -> [String]) {
    if !continuations.isEmpty { for step in steps() { trace(step) } }
  }
}

/// What a caller inside the program gets.
package struct ResolvedAnswer: Sendable {
  /// The response as it is kept, or an empty one with the RCODE and the extended error.
  package var response: ComposedResponse
  /// Seconds that the answer holds; 0 for a failure.
  package var lifetime: UInt32
  /// Who gave it.
  package var source: AnswerSource
  /// Why it failed, where it did.
  package var failure: String?
  /// What has led on from one who was asked to the next.
  package var trail: [String] = []

  package init(
    response: ComposedResponse, lifetime: UInt32, source: AnswerSource, failure: String? = nil, trail: [String] = []
  ) {
    self.response = response
    self.lifetime = lifetime
    self.source = source
    self.failure = failure
    self.trail = trail
  }
}
