// ListTransfer.swift -- one HTTP exchange for a list, on a thread and a loop of its own.
//
// The resolver's loop would be held while libcurl unpacks a text, and while the disk takes it: 64 MiB are half a second. The
// thread ends with the exchange.

import EventLoop
import Glibc
import HTTPClient
import HTTPMessage
import Persistence
import Synchronization

/// One request and its response. Any thread may cancel it.
final class ListTransfer: Sendable {
  private let server: HTTPServerAddress
  private let request: HTTPRequest
  private let options: HTTPClientOptions
  /// The longest time without an octet, and in all.
  private let (silence, total): (Duration, Duration)
  private let state = Mutex(State())

  private struct State: Sendable {
    var isCancelled = false
    var loop: EventLoop?
  }

  init(
    _ server: HTTPServerAddress, _ request: HTTPRequest, _ options: HTTPClientOptions, silence: Duration,
    total: Duration
  ) {
    (self.server, self.request, self.options) = (server, request, options)
    (self.silence, self.total) = (silence, total)
  }

  /// Sends the request; to be called once.
  func result(on loop: any Loop) async -> HTTPResult {
    let caller = pthread_self()
    return await BlockingTask.value("list fetch", on: loop) { [self] in
      // It would hold the caller's loop for minutes.
      guard pthread_self() != caller else { return .failure(HTTPFailure(.internal, "no thread can be created")) }
      lowerPriority()
      return run()
    }
  }

  func cancel() {
    let loop = state.withLock { state in
      state.isCancelled = true
      return state.loop
    }
    loop?.wake()
  }

  private var isCancelled: Bool { state.withLock { $0.isCancelled } }

  private func run() -> HTTPResult {
    let (loop, origin): (EventLoop, HTTPOrigin)
    do {
      loop = try EventLoop()
      origin = try HTTPOrigin(server, options: options, on: loop)
    } catch {
      return .failure(HTTPFailure(.internal, "\(error)"))
    }
    state.withLock { $0.loop = loop }
    let exchange = Exchange(origin, loop, silence)
    loop.everyTurn { [self] in if isCancelled { origin.close() } }
    loop.startTask { [request, total] in await exchange.run(request, atMost: total) }
    loop.run()
    loop.everyTurn(nil)
    state.withLock { $0.loop = nil }
    return exchange.result
  }
}

/// What runs on the transfer's loop.
private final class Exchange {
  private(set) var result = HTTPResult.failure(HTTPFailure(.cancelled, "the transfer did not begin"))
  private let origin: HTTPOrigin
  private let loop: EventLoop
  private let silence: Duration
  private let beganAt: BootInstant
  private var isSilent = false
  private let timer = OwnedTimer()

  init(_ origin: HTTPOrigin, _ loop: EventLoop, _ silence: Duration) {
    (self.origin, self.loop, self.silence) = (origin, loop, silence)
    beganAt = loop.now
  }

  func run(_ request: HTTPRequest, atMost total: Duration) async {
    watch()
    result = await origin.send(request, timeout: total)
    if isSilent { result = .failure(HTTPFailure(.timeout, "nothing came for \(silence.components.seconds) s")) }
    timer.cancel()
    origin.close()
    loop.stop()
  }

  private func watch() {
    let end = max(beganAt, origin.heardAt) + silence
    guard end > loop.now else {
      isSilent = true
      return origin.close()
    }
    timer.set(at: end, on: loop, for: self) { $0.watch() }
  }
}

/// The calling thread, which ends with its work, gives way to all others.
func lowerPriority() { setpriority(PRIO_PROCESS, 0, 10) }
