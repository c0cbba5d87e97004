// ServerRace.swift -- the servers of one question: asks the next one in parallel after 300 ms of silence.
//
// On the loop's thread only. A question has at most three sockets: before a fourth server, it abandons the one that has
// been silent longest.

import DNSWire
import EventLoop

/// Asks servers until one answers.
final class ServerRace: @unchecked Sendable {
  /// The time of silence after which the next server is asked in parallel.
  static let headStart = Duration.milliseconds(300)

  /// Maximum servers of one question in flight.
  static let mostRunners = 3

  private let client: LocalDNSClient
  private let servers: [SocketAddress]
  private let begin: BootInstant
  private let end: BootInstant
  private let ask: (SocketAddress, BootInstant) async -> Result<Message, LocalDNSFailure>
  private var runners: [Int: Task<Void, Never>] = [:]
  private var starts: [BootInstant] = []
  private var timer: LoopTimer?
  private var negativeTimer: LoopTimer?
  /// A negative answer that arrived while an earlier server was in flight, which takes precedence if it answers.
  private var negative: (message: Message, place: Int)?
  private var failure = LocalDNSFailure.noServer
  private var continuation: CheckedContinuation<Result<LocalDNSAnswer, LocalDNSFailure>, Never>?

  private var clock: any Loop { client.exchanger.clock }

  /// - Parameter ask: asks one server until a deadline.
  init(
    _ client: LocalDNSClient, _ servers: [SocketAddress], timeout: Duration,
    ask: @escaping (SocketAddress, BootInstant) async -> Result<Message, LocalDNSFailure>
  ) {
    self.client = client
    self.servers = servers
    begin = client.exchanger.clock.now
    end = begin + timeout
    self.ask = ask
  }

  /// Returns the first answer; if there is none, the failure of the last server.
  func run() async -> Result<LocalDNSAnswer, LocalDNSFailure> {
    let clock = self.clock
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        self.continuation = continuation
        if Task.isCancelled { finish(.failure(.cancelled)) } else { startNext() }
      }
    } onCancel: {
      Task(executorPreference: clock) { self.cancel() }
    }
  }

  /// Cancels all exchanges; the race ends when their sockets are closed.
  private func cancel() {
    timer?.cancel()
    for runner in runners.values { runner.cancel() }
  }

  private func startNext() {
    timer?.cancel()
    timer = nil
    let place = starts.count
    guard place < servers.count, clock.now < end else {
      if runners.isEmpty { finish(negative.map(answer) ?? .failure(failure)) }
      return
    }
    if runners.count == ServerRace.mostRunners, let oldest = runners.keys.min() {
      let runner = runners.removeValue(forKey: oldest)
      failure = .timedOut
      client.noteSilence(of: servers[oldest])
      runner?.cancel()
      if let negative, runners.keys.allSatisfy({ $0 > negative.place }) { return giveNegative() }
    }
    let now = clock.now
    let share = (end - now) / (servers.count - place)
    starts.append(now)
    runners[place] = Task(executorPreference: clock) { [self] in
      let result = await ask(servers[place], end)
      ended(place, result, share: share)
    }
    guard place + 1 < servers.count else { return }
    timer = clock.schedule(after: min(ServerRace.headStart, share)) { [self] in startNext() }
  }

  private func ended(_ place: Int, _ result: Result<Message, LocalDNSFailure>, share: Duration) {
    // An abandoned server reports a cancellation.
    guard continuation != nil, runners.removeValue(forKey: place) != nil else { return }
    let server = servers[place]
    switch result {
    // A response that was in flight while the machine slept is too old.
    case .success where clock.hasSlept(since: starts[place], waitingFor: share): failed(place, .timedOut)
    case .success(let message):
      client.standing.answered(server, at: clock.now)
      guard message.isNegative, let first = runners.keys.min(), first < place else { return win(place, message) }
      // If servers differ, their order matters: an earlier server gets its fair share of the time before the negative
      // answer is used.
      negative = negative ?? (message, place)
      negativeTimer = clock.schedule(at: begin + (end - begin) / servers.count) { [self] in giveNegative() }
    case .failure(.cancelled): finish(.failure(.cancelled))
    case .failure(let reason):
      switch reason {
      case .responseCode, .referral: client.standing.answered(server, at: clock.now)
      default: break
      }
      failed(place, reason)
    }
  }

  private func failed(_ place: Int, _ reason: LocalDNSFailure) {
    failure = reason
    if reason == .timedOut { client.noteSilence(of: servers[place]) }
    if let negative, runners.keys.allSatisfy({ $0 > negative.place }) { return giveNegative() }
    // While another server is in flight, the timer starts the next one.
    if runners.isEmpty { startNext() }
  }

  private func giveNegative() {
    if let negative { win(negative.place, negative.message) }
  }

  /// Demotes earlier servers that are still silent, and returns the answer.
  private func win(_ place: Int, _ message: Message) {
    let now = clock.now
    for other in runners.keys where other < place && now - starts[other] >= ServerRace.headStart {
      client.noteSilence(of: servers[other])
    }
    finish(answer(message, place))
  }

  private func answer(_ message: Message, _ place: Int) -> Result<LocalDNSAnswer, LocalDNSFailure> {
    .success(LocalDNSAnswer(message: message, server: servers[place]))
  }

  private func finish(_ result: Result<LocalDNSAnswer, LocalDNSFailure>) {
    guard let continuation else { return }
    self.continuation = nil
    timer?.cancel()
    negativeTimer?.cancel()
    for runner in runners.values { runner.cancel() }
    runners = [:]
    continuation.resume(returning: result)
  }
}

extension Message {
  /// Whether it is a negative answer; another server may have records.
  fileprivate var isNegative: Bool { responseCode == .nxDomain || answers.isEmpty }
}
