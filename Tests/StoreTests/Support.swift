// Support.swift -- runs tests of the store on a real loop, and waits for replies.

import EventLoop
import Glibc
import Store
import TestSupport
import Testing

struct TestTookTooLong: Error {}

typealias StoreResult = Result<RESPValue, StoreFailure>

/// Runs `body` as a task on a fresh loop, for a bounded time.
func onLoop(_ body: @escaping @Sendable (EventLoop) async throws -> Void) throws {
  // OpenSSL writes to sockets without MSG_NOSIGNAL; the daemon ignores the signal as well.
  signal(SIGPIPE, SIG_IGN)
  let loop = try EventLoop()
  let end = End()
  Task(executorPreference: loop) {
    do {
      try await body(loop)
      end.result = .success(())
    } catch {
      end.result = .failure(error)
    }
    loop.stop()
  }
  stop(loop, at: .now + .seconds(60))
  loop.run()
  guard let result = end.result else { throw TestTookTooLong() }
  try result.get()
}

/// Stops the loop at that time, also if a test has its timers fire earlier.
private func stop(_ loop: EventLoop, at end: BootInstant) {
  loop.schedule(at: max(end, .now)) { if BootInstant.now >= end { loop.stop() } else { stop(loop, at: end) } }
}

private final class End: @unchecked Sendable {
  var result: Result<Void, any Error>?
}

/// A client and what it said.
final class ClientScene {
  let client: StoreClient
  private(set) var events: [StoreEvent] = []
  private(set) var ups = 0

  init(_ settings: StoreSettings, on loop: EventLoop, resolve: @escaping StoreResolver = { _ in [] }) {
    var pass: (StoreEvent) -> Void = { _ in }
    client = StoreClient(settings, on: loop, resolve: resolve) { pass($0) }
    pass = { [unowned self] in events.append($0) }
    client.onUp = { [unowned self] in ups += 1 }
  }

  deinit { client.close() }

  /// Starts the client and waits until it is up.
  func up(_ loop: EventLoop) async throws {
    client.start()
    try #require(await loop.until { self.client.isUp }, "\(client.report)")
  }
}

extension StoreLink {
  /// Sends a command and waits for its result.
  func ask(_ words: String..., timeout: Duration = .seconds(20)) async -> StoreResult {
    await withCheckedContinuation { continuation in
      call(words.map { Array($0.utf8) }, timeout: timeout) { continuation.resume(returning: $0) }
    }
  }

  /// Posts a command and waits for its result.
  func tell(_ words: String...) async -> StoreResult {
    await withCheckedContinuation { continuation in
      post(words.map { Array($0.utf8) }) { continuation.resume(returning: $0) }
    }
  }
}

/// A value of octets from a text.
func bulk(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

/// A command's words.
func words(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
