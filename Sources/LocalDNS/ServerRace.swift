// ServerRace.swift -- one question's servers: the next one is asked beside one that is silent for 300 ms.
//
// On the loop's thread only. A question has three sockets at most: for a fourth server the one that is silent for longest is
// given up.

import DNSWire
import EventLoop

/// Asks servers until one answers.
final class ServerRace: @unchecked Sendable {
  /// How long a server may be silent before the next one is asked as well.
  static let headStart = Duration.milliseconds(300)

  /// Servers of one question that are waited for at once.
  static let mostRunners = 3

  private let client: LocalDNSClient
  private let servers: [SocketAddress]
  private let begin: BootInstant
  private let end: BootInstant
  private let ask: (SocketAddress, BootInstant) async -> Result<Message, LocalDNSFailure>
  private var runners: [Int: Task<Void, Never>] = [:]
  private var starts: [BootInstant] = []
  private var timer: LoopTimer?
  private var denialTimer: LoopTimer?
  /// A negative answer of a server that was asked beside another one, which may know better.
  private var denial: (message: Message, place: Int)?
  private var failure = LocalDNSFailure.noServer
  private var continuation: CheckedContinuation<Result<Message, LocalDNSFailure>, Never>?

  private var clock: any Loop { client.wire.clock }

  /// - Parameter ask: asks one server until a deadline.
  init(
    _ client: LocalDNSClient, _ servers: [SocketAddress], timeout: Duration,
    ask: @escaping (SocketAddress, BootInstant) async -> Result<Message, LocalDNSFailure>
  ) {
    self.client = client
    self.servers = servers
    begin = client.wire.clock.now
    end = begin + timeout
    self.ask = ask
  }

  /// The first answer; where nobody answers, what the last one did.
  func run() async -> Result<Message, LocalDNSFailure> {
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

  /// Ends when the sockets are closed.
  private func cancel() {
    timer?.cancel()
    for runner in runners.values { runner.cancel() }
  }

  private func startNext() {
    timer?.cancel()
    timer = nil
    let place = starts.count
    guard place < servers.count, clock.now < end else {
      if runners.isEmpty { finish(denial.map { .success($0.message) } ?? .failure(failure)) }
      return
    }
    if runners.count == ServerRace.mostRunners, let oldest = runners.keys.min() {
      let runner = runners.removeValue(forKey: oldest)
      failure = .timedOut
      client.noteSilence(of: servers[oldest])
      runner?.cancel()
      if let denial, runners.keys.allSatisfy({ $0 > denial.place }) { return giveDenial() }
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
    // One that was given up says that it was cancelled.
    guard continuation != nil, runners.removeValue(forKey: place) != nil else { return }
    let server = servers[place]
    switch result {
    // What was in flight while the machine slept is as old as that.
    case .success where clock.hasSlept(since: starts[place], waitingFor: share): failed(place, .timedOut)
    case .success(let message):
      client.standing.answered(server, at: clock.now)
      guard message.isDenial, let first = runners.keys.min(), first < place else { return win(place, message) }
      // Where servers differ, the order means something: the one before has the share of the time that it had alone.
      denial = denial ?? (message, place)
      denialTimer = clock.schedule(at: begin + (end - begin) / servers.count) { [self] in giveDenial() }
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
    if let denial, runners.keys.allSatisfy({ $0 > denial.place }) { return giveDenial() }
    // Beside another one that is in flight the next one begins in its time.
    if runners.isEmpty { startNext() }
  }

  private func giveDenial() {
    if let denial { win(denial.place, denial.message) }
  }

  /// Servers that were asked before the one that has answered, and are silent still, go behind it.
  private func win(_ place: Int, _ message: Message) {
    let now = clock.now
    for other in runners.keys where other < place && now - starts[other] >= ServerRace.headStart {
      client.noteSilence(of: servers[other])
    }
    finish(.success(message))
  }

  private func finish(_ result: Result<Message, LocalDNSFailure>) {
    guard let continuation else { return }
    self.continuation = nil
    timer?.cancel()
    denialTimer?.cancel()
    for runner in runners.values { runner.cancel() }
    runners = [:]
    continuation.resume(returning: result)
  }
}

extension Message {
  /// Whether it has no records for the question: another server may have some.
  fileprivate var isDenial: Bool { responseCode == .nxDomain || answers.isEmpty }
}
