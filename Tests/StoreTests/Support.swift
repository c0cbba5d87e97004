// Support.swift -- a client of a store and what it said, and waiting for replies.

import Configuration
import EventLoop
import Store
import TestSupport
import Testing

typealias StoreResult = Result<RESPValue, StoreFailure>

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

extension StoreSettings {
  /// The settings of a store without TLS; the others have their defaults.
  init(at address: Configuration.StoreEndpoint) {
    self.init(try! Configuration.StoreURL(text: "redis://127.0.0.1"), Configuration().fleet)
    self.address = address
  }
}

extension Configuration.StoreEndpoint {
  /// A host name or IP address as text, and a TCP port.
  static func tcp(host: String, port: UInt16) -> Configuration.StoreEndpoint { .host(Host(text: host)!, port: port) }
}

/// A value of octets from a text.
func bulk(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

/// A command's words.
func words(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
