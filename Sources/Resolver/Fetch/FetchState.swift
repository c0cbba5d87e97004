// FetchState.swift -- the rules of a question in flight: who is asked beside whom, and which result its clients get when.
//
// A question is put to the providers of its route in order, and to LocalDNS after them (UpstreamOrder.swift). It would be
// simple to ask one after the other, but then each silent provider costs every client its whole timeout. So the next
// upstream is also asked beside one that has not replied in time, and results arrive in any order:
//
// * While the provider asked last gives verdicts, if only to other questions, patience is usual. A second after the question
//   began, or got a connection, LocalDNS is asked, and not the next provider. Its answer is held until the longest timeout of
//   the route's providers, counted from the start of the question. A provider's answer that comes before that is given
//   instead.
// * While the provider asked last is silent, patience is short (four times its usual round trip): the next provider is
//   asked, then LocalDNS. A provider's answer is given at once; LocalDNS's waits until the route's last provider was asked and
//   had its short time.
// * A verdict without data (SERVFAIL) lets the remaining providers be asked, but LocalDNS's answer no longer counts: it is
//   dropped if it is held, and ignored if it comes. The same holds after our own limits.
// * NXDOMAIN below a search domain of the network decides nothing: LocalDNS counts again, and wins if it knows the name.
// * An empty answer that may mean "not in the list" is worth less than LocalDNS's answer.
// * When `stale_wait` is over, and at the last moment, the clients get what there is: the held answer; after a verdict stale
//   data or SERVFAIL; an empty answer that may mean "not in the list"; else stale data or a failure.
//
// What arrives after the clients have been answered is stored; LocalDNS's answer is not if they got an answer, a provider has
// decided, or a fresh answer is cached. A question that has lost its place to another one (`isDisplaced`) asks no further
// upstream.
//
// Each event is a function that changes the state and returns what the resolver does about it. Nothing in here asks,
// waits or answers. Repeated queries start an attempt a second at most, and none while `ResolverSettings.mostAttempts` are
// in progress. In what one attempt starts, each provider is asked once, and LocalDNS once unless its answer was dropped.

import EventLoop
import MessageCache
import Upstreams

/// The state of a question in flight.
struct FetchState {
  /// What the resolver does after an event.
  enum Action {
    /// Nothing: other attempts are in progress, or no client waits.
    case wait
    /// Sets the timer to the next event.
    case setTimer
    /// Answers all clients.
    case deliver(FetchResult)
    /// Starts an attempt that asks all upstreams in order.
    case askUpstreams
    /// Asks the next provider beside the one that is silent.
    case askNextProvider
    /// Asks LocalDNS beside the providers.
    case askLocalDNS
  }

  /// What is left to ask.
  struct Options {
    /// Whether the provider that was asked last gives no verdicts.
    var isImpatient: Bool
    /// Whether a provider that serves the question has not been asked.
    var hasNextProvider: Bool
    /// Whether LocalDNS may be asked in the place of providers.
    var fallsBack: Bool
  }

  /// When it began, or when the first client joined a refresh.
  private(set) var startedAt: BootInstant
  /// When the last attempt began.
  private(set) var lastAttempt: BootInstant
  /// Attempts in progress.
  private(set) var attempts = 0
  /// Whether no client waits: it refreshes a cached answer, and its failure changes nothing.
  private(set) var isRefresh: Bool
  /// Whether the clients have been answered.
  private(set) var isAnswered = false
  /// Whether that was with an answer, not with stale data or a failure.
  private var hasAnswer = false
  /// Whether another question has its place while its transfers have not ended.
  private(set) var isDisplaced = false
  /// When stale data is given if there is no answer; nil if there is no stale data.
  private var staleAt: BootInstant?

  /// The place in the route of the next provider to ask.
  private(set) var nextProvider = 0
  private var askedProviders = 0
  /// The short patience with the provider that was asked last, and its end. Before that a held answer of LocalDNS is not given,
  /// unless stale data is due, the last moment has come, or the last attempt fails.
  private var providerTime = Duration.zero
  private var providerEnd: BootInstant
  /// When the next upstream is asked as well; nil if none is.
  private var patienceEnd: BootInstant?
  /// When that is while the provider gives verdicts.
  private var usualPatienceEnd: BootInstant
  /// The failure to report if no upstream has an answer: the first one that excludes LocalDNS, or the last one.
  private var failed: FetchResult?
  /// The first empty answer that may only mean "not in the list".
  private var empty: FetchResult?

  /// The network whose LocalDNS was asked last; before that, the one on which it began.
  private(set) var network: UInt32
  /// Whether LocalDNS had its turn, whether it is being asked, and whether it had an answer.
  private(set) var hasAskedLocal = false
  private var isAskingLocal = false
  private var hasLocalAnswer = false
  /// Whether a provider's verdict or one of our limits excludes LocalDNS's answer.
  private var isDecided = false
  /// The answer to give if no better one arrives in time: LocalDNS's while a provider is asked, or a provider's empty one
  /// while LocalDNS is asked.
  private(set) var held: FetchResult?
  /// When `held` is given at the latest; nil for the last moment.
  private var heldUntil: BootInstant?

  /// How often the timer looks at a question that waits for a connection.
  private static let queueInterval = ResolverSettings.localDNSDelay / 4

  /// - Parameter isRefresh: whether no client waits for it.
  init(isRefresh: Bool, network: UInt32, now: BootInstant) {
    (self.isRefresh, self.network) = (isRefresh, network)
    (startedAt, lastAttempt, providerEnd) = (now, now, now)
    usualPatienceEnd = now + ResolverSettings.localDNSDelay
  }

  /// When the clients are answered at the latest.
  var end: BootInstant { startedAt + ResolverSettings.answerBy }

  // MARK: Clients

  /// Lets a client wait for it.
  ///
  /// - Returns: whether it is the first one: its time begins now.
  mutating func join(now: BootInstant) -> Bool {
    guard isRefresh else { return false }
    (isRefresh, startedAt) = (false, now)
    return true
  }

  /// The clients get stale data at that time if no answer arrives before.
  mutating func giveStaleData(at time: BootInstant) { staleAt = time }

  /// Whether a client that repeats its query may start another attempt: the present one may be lost. With stale data one
  /// attempt is enough (RFC 8767 section 5).
  func mayRepeat(now: BootInstant) -> Bool {
    !isAnswered && attempts < ResolverSettings.mostAttempts && staleAt == nil
      && now - lastAttempt >= ResolverSettings.retryAfter
  }

  /// Whether a late answer of LocalDNS is worth nothing: the clients have an upstream's answer, or a provider has decided.
  var excludesLateLocal: Bool { hasAnswer || isDecided }

  /// The clients get a result, unless they have one.
  ///
  /// - Returns: whether they had none.
  mutating func markAnswered(isAnswer: Bool) -> Bool {
    if isAnswer { hasAnswer = true }
    guard !isAnswered else { return false }
    (isAnswered, held) = (true, nil)
    return true
  }

  /// It loses its place to another question.
  ///
  /// - Returns: what its clients get.
  mutating func displace() -> FetchResult {
    isDisplaced = true
    return held.flatMap { $0.source.isLocalDNS ? nil : $0 } ?? .failure(.limited(.places))
  }

  /// Its transfers have ended.
  ///
  /// - Returns: whether it had lost its place before.
  mutating func leave() -> Bool {
    defer { isDisplaced = false }
    return isDisplaced
  }

  // MARK: Attempts

  mutating func attemptBegins(now: BootInstant) {
    attempts += 1
    lastAttempt = now
  }

  /// The next attempt asks all providers once more.
  mutating func beginAgain() { nextProvider = 0 }

  /// An attempt has ended: all clients are answered, or that is left to the attempts in progress.
  ///
  /// - Parameter isSearched: whether LocalDNS may be asked for names that the providers deny.
  mutating func attemptEnded(_ result: FetchResult, isSearched: Bool) -> Action {
    attempts -= 1
    switch result.result {
    case .success where result.source.isLocalDNS && isDecided:
      guard attempts == 0 else {
        if isSearched { hasAskedLocal = false }
        return .wait
      }
      return .deliver(held ?? .failure(.limitedBefore))
    case .success: return .deliver(result)
    // A provider's reply is final, and our own limits never lead to LocalDNS.
    case .failure(let reason) where result.source.isProvider && !reason.consequence.leadsToLocalDNS:
      excludeLocal(isSearched: isSearched)
      return reason.consequence == .verdict || attempts == 0 ? .deliver(result) : .wait
    case .failure: return attempts > 0 ? .wait : .deliver(held ?? result)
    }
  }

  /// A refresh has ended. If it failed and clients have joined it, an ordinary attempt follows.
  mutating func refreshEnded(_ result: FetchResult, isSearched: Bool) -> Action {
    guard result.failure != nil, !isRefresh, !isAnswered, attempts == 1 else {
      return attemptEnded(result, isSearched: isSearched)
    }
    attempts = 0
    return .askUpstreams
  }

  // MARK: Providers

  /// The provider at this place in the route is asked, or passed over.
  mutating func markProviderTaken(at place: Int) { nextProvider = place + 1 }

  mutating func providerStarted() { askedProviders += 1 }

  /// The provider has replied, or failed.
  mutating func providerStopped() { askedProviders -= 1 }

  /// A provider's empty answer may mean that it does not have the name in its list.
  mutating func noteEmpty(_ result: FetchResult) { empty = empty ?? result }

  /// A provider has failed, or is not asked. A failure that excludes LocalDNS counts from now on, whatever later providers
  /// fail with.
  mutating func providerFailed(_ result: FetchResult, isSearched: Bool) {
    guard let reason = result.failure else { return }
    if failed?.failure?.consequence.leadsToLocalDNS ?? true { failed = result }
    if !reason.consequence.leadsToLocalDNS { excludeLocal(isSearched: isSearched) }
  }

  /// What follows when no provider is left to ask.
  enum AfterProviders {
    /// The result of the attempt. While another provider is asked, that one's result decides, and this one reaches no client.
    case result(FetchResult)
    /// LocalDNS, or an answer without an upstream; with the providers' failure and their empty answer.
    case withoutProvider(UpstreamFailure?, empty: FetchResult?)
  }

  /// No provider of the route is left to ask.
  ///
  /// - Parameter hasSeveral: whether the route has several providers.
  func afterProviders(hasSeveral: Bool) -> AfterProviders {
    if askedProviders > 0, hasSeveral { return .result(.failure(failed?.failure ?? .unserved)) }
    if let failed, askedProviders > 0 || failed.failure?.consequence.leadsToLocalDNS == false { return .result(failed) }
    return .withoutProvider(failed?.failure, empty: empty)
  }

  /// LocalDNS's answer no longer counts. Below a search domain the next provider's NXDOMAIN makes it count after all, so
  /// `hasAskedLocal` is cleared.
  private mutating func excludeLocal(isSearched: Bool) {
    isDecided = true
    guard held?.source.isLocalDNS == true else { return }
    held = nil
    if isSearched { hasAskedLocal = false }
  }

  // MARK: LocalDNS

  /// LocalDNS's turn has come, whether or not it can be asked.
  mutating func markLocalDNSAsked() { hasAskedLocal = true }

  mutating func localDNSStarted(on network: UInt32) { (isAskingLocal, self.network) = (true, network) }

  /// LocalDNS has replied, or failed; `localDNSAttemptEnded` follows if it was asked beside the providers.
  mutating func localDNSStopped(hasAnswer: Bool) { (isAskingLocal, hasLocalAnswer) = (false, hasAnswer) }

  /// LocalDNS, which was asked beside the providers, has ended. A provider's answer is preferred as long as its attempt has
  /// time.
  ///
  /// - Parameter timeout: the longest one of the route's providers.
  mutating func localDNSAttemptEnded(
    _ result: FetchResult, isImpatient: Bool, timeout: Duration, isSearched: Bool, now: BootInstant
  ) -> Action {
    guard result.answer != nil, attempts > 1, !isAnswered, !isDecided else {
      return attemptEnded(result, isSearched: isSearched)
    }
    attempts -= 1
    held = result
    heldUntil = isImpatient ? now : startedAt + min(timeout, ResolverSettings.answerBy)
    return .setTimer
  }

  /// Nothing but LocalDNS is left.
  ///
  /// - Parameter lastResort: an answer that is given if LocalDNS has none.
  /// - Returns: whether LocalDNS, which is asked beside the providers, has a better one, or may have.
  mutating func holdForLocalDNS(or lastResort: FetchResult?) -> Bool {
    if isAskingLocal { held = held ?? lastResort }
    return isAskingLocal || held?.source.isLocalDNS ?? false
  }

  /// What follows a provider's NXDOMAIN below a search domain.
  enum AfterNXDOMAIN {
    /// LocalDNS is being asked; the NXDOMAIN is given if it does not answer in time.
    case waits
    /// LocalDNS knows the name.
    case data(FetchResult)
    /// LocalDNS had its turn, and either failed or has said NXDOMAIN as well.
    case localDNSWasAsked(isConfirmed: Bool)
    /// LocalDNS has not been asked, and is now.
    case asksLocalDNS
  }

  /// A provider has said NXDOMAIN below a search domain: LocalDNS counts again, whatever another one has failed with before.
  mutating func providerDenies(_ result: FetchResult) -> AfterNXDOMAIN {
    isDecided = false
    if isAskingLocal {
      held = result
      return .waits
    }
    if let held, held.nameExists { return .data(held) }
    return hasAskedLocal ? .localDNSWasAsked(isConfirmed: hasLocalAnswer) : .asksLocalDNS
  }

  /// The machine is on another network: LocalDNS's answer of the one before is dropped, and the current one is asked if the
  /// route falls back.
  ///
  /// - Returns: whether there was such an answer.
  mutating func networkIsAnother(_ number: UInt32, now: BootInstant) -> Bool {
    guard network != number, held?.source.isLocalDNS == true else { return false }
    (held, heldUntil, hasAskedLocal, patienceEnd) = (nil, nil, false, now)
    return true
  }

  // MARK: Time

  /// It begins to wait for a provider, or as long as usual.
  ///
  /// - Parameter time: how long the provider may be silent before another one is asked.
  /// - Returns: when that is.
  mutating func beginPatience(_ time: Duration, isImpatient: Bool, now: BootInstant) -> BootInstant {
    (providerTime, providerEnd) = (time, now + time)
    usualPatienceEnd = max(providerEnd, startedAt + ResolverSettings.localDNSDelay)
    let end = isImpatient ? providerEnd : usualPatienceEnd
    patienceEnd = end
    return end
  }

  /// A transfer that waited has got a connection: the time before was not the provider's.
  mutating func gotConnection(isImpatient: Bool, now: BootInstant) {
    usualPatienceEnd = now + ResolverSettings.localDNSDelay
    if !isImpatient, patienceEnd != nil { patienceEnd = usualPatienceEnd }
    providerEnd = max(providerEnd, now + providerTime)
  }

  /// When `timeHasCome` is due.
  func nextEvent(_ options: Options) -> BootInstant {
    var next = end
    if let patienceEnd, mayGoOn(options) { next = min(next, patienceEnd) }
    if held != nil, let heldUntil { next = min(next, heldUntil) }
    if let staleAt { next = min(next, staleAt) }
    return next
  }

  /// Whether stale data is to be given.
  func isStaleDue(at now: BootInstant) -> Bool { staleAt.map { $0 <= now } ?? false }

  /// One of the times of `nextEvent` has come.
  ///
  /// - Parameters:
  ///   - hasStale: whether stale data is cached; only read if `isStaleDue`.
  ///   - isQueued: whether it waits for a connection because of other questions.
  mutating func timeHasCome(_ options: Options, hasStale: Bool, isQueued: Bool, now: BootInstant) -> [Action] {
    guard !isAnswered, !isRefresh else { return [] }
    var actions: [Action] = []
    // The stale data is gone, so the clients wait for the answer.
    if isStaleDue(at: now), !hasStale { staleAt = nil }
    let staleIsDue = isStaleDue(at: now)
    if let held, staleIsDue || (heldUntil ?? end) <= now {
      guard !staleIsDue, held.source.isLocalDNS, now < end, let later = lastProviderHasUntil(options, now) else {
        return [.deliver(held)]
      }
      if options.hasNextProvider { actions.append(starting(.askNextProvider)) }
      heldUntil = later
    }
    guard !staleIsDue, now < end else {
      // One provider has given a verdict without an answer, and the next one has not replied.
      let verdict = failed.flatMap { $0.failure?.consequence == .verdict ? $0 : nil }
      return [.deliver(verdict ?? empty ?? .failure(.noAnswerInTime))]
    }
    if let due = patienceEnd, due <= now, mayGoOn(options) {
      patienceEnd = laterPatience(options, isQueued: isQueued, now)
      if patienceEnd == nil {
        let isProvider = options.isImpatient && options.hasNextProvider
        if !isProvider { hasAskedLocal = true }
        actions.append(starting(isProvider ? .askNextProvider : .askLocalDNS))
      }
    }
    return actions + [.setTimer]
  }

  /// Counts the attempt that the action starts.
  private mutating func starting(_ action: Action) -> Action {
    attempts += 1
    return action
  }

  /// Whether another upstream may be asked beside the present one: the next provider if that one has been silent, else
  /// LocalDNS.
  func mayGoOn(_ options: Options) -> Bool {
    options.isImpatient && options.hasNextProvider || !hasAskedLocal && !isDecided && options.fallsBack
  }

  /// A later end of patience: a provider that gives verdicts has time left, or other questions have all its connections;
  /// nil if there is none.
  private func laterPatience(_ options: Options, isQueued: Bool, _ now: BootInstant) -> BootInstant? {
    guard !options.isImpatient else { return nil }
    let end = isQueued ? now + FetchState.queueInterval : usualPatienceEnd
    return end > now ? end : nil
  }

  /// When the last provider has had its time, before which LocalDNS's answer is not given; nil if it has.
  private func lastProviderHasUntil(_ options: Options, _ now: BootInstant) -> BootInstant? {
    if options.hasNextProvider { return now + ResolverSettings.leastPatience }
    return askedProviders > 0 && now < providerEnd ? providerEnd : nil
  }
}
