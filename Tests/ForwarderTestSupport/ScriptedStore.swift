// ScriptedStore.swift -- a store in memory on a virtual clock, for several daemons, and what can be wrong with it.

import DNSWire
import EventLoop
import Store
import TestSupport

/// The server: strings, counters, a sorted set and a stream, as far as the fleet uses them.
final class ScriptedStore: @unchecked Sendable {
  enum Condition {
    case works
    /// It takes commands and never answers.
    case silent
    /// Connections are refused.
    case down
    /// Writes are refused.
    case readOnly
  }

  struct Value {
    var octets: [UInt8]
    var expiresAt: BootInstant?
  }

  var condition = Condition.works { didSet { for link in links { link.storeHasChanged() } } }
  /// The time between a command and its reply.
  var latency = Duration.microseconds(200)
  /// By how many seconds its clock is ahead.
  var clockOffset: Int64 = 0
  var values: [[UInt8]: Value] = [:]
  private(set) var members: [[UInt8]: Int64] = [:]
  /// Commands by name.
  private(set) var commands: [String: Int] = [:]
  fileprivate let loop: SimulatedLoop
  private var links: [ScriptedLink] = []

  init(on loop: SimulatedLoop) { self.loop = loop }

  func link() -> ScriptedLink {
    let link = ScriptedLink(self)
    links.append(link)
    return link
  }

  /// It has lost everything.
  func flushAll() { (values, members) = ([:], [:]) }

  var keys: [String] { values.keys.map { String(decoding: $0, as: UTF8.self) }.sorted() }

  fileprivate func run(_ words: [[UInt8]]) -> RESPValue {
    let name = String(decoding: words[0], as: UTF8.self)
    commands[name, default: 0] += 1
    func number(_ index: Int) -> Int64 { Int64(String(decoding: words[index], as: UTF8.self))! }
    let writes = ["SET", "DEL", "INCRBY", "ZADD", "ZREMRANGEBYSCORE", "XADD"]
    if condition == .readOnly, writes.contains(name) {
      return .error("READONLY You can't write against a read only replica.")
    }
    values = values.filter { $0.value.expiresAt.map { $0 > loop.now } ?? true }
    switch name {
    case "GET": return values[words[1]].map { .bulk($0.octets) } ?? .null
    case "SET":
      let options = words[3...].map { String(decoding: $0, as: UTF8.self) }
      if options.contains("NX"), values[words[1]] != nil { return .null }
      let life = options.firstIndex(of: "PX").map { Duration.milliseconds(Int64(options[$0 + 1])!) }
      values[words[1]] = Value(octets: words[2], expiresAt: life.map { loop.now + $0 })
      return .status("OK")
    case "DEL":
      let found = words[1...].count { values.removeValue(forKey: $0) != nil }
      return .integer(Int64(found))
    case "INCRBY":
      let old = values[words[1]].map { Int64(String(decoding: $0.octets, as: UTF8.self))! } ?? 0
      values[words[1]] = Value(octets: Array("\(old + number(2))".utf8), expiresAt: nil)
      return .integer(old + number(2))
    case "TIME":
      let milliseconds = (1_800_000_000 + clockOffset) * 1_000 + loop.now.nanoseconds / 1_000_000
      return .array([
        .bulk(Array("\(milliseconds / 1_000)".utf8)), .bulk(Array("\(milliseconds % 1_000 * 1_000)".utf8)),
      ])
    case "ZADD":
      members[words[3]] = number(2)
      return .integer(1)
    case "ZRANGE": return .array(members.keys.map { .bulk($0) })
    case "ZREMRANGEBYSCORE":
      members = members.filter { $0.value > number(3) }
      return .integer(0)
    default: return .error("ERR unknown command")
    }
  }
}

/// One daemon's connection, with a breaker that opens for a second after three timeouts.
final class ScriptedLink: StoreLink, @unchecked Sendable {
  private let store: ScriptedStore
  private var timeouts = 0
  private var isBroken = false
  var isUp: Bool { !isBroken && store.condition != .down }
  var mayWrite: Bool { store.condition != .readOnly }
  /// Called when it can be used again.
  var onUp: (() -> Void)?

  init(_ store: ScriptedStore) { self.store = store }

  func want() {}

  func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion) {
    let loop = store.loop
    guard isUp else {
      loop.schedule(after: .zero) { done(.failure(.open)) }
      return
    }
    guard store.condition != .silent, store.latency <= timeout else {
      loop.schedule(after: timeout) { [self] in
        timeouts += 1
        if timeouts == 3 { breakOff() }
        done(.failure(.timeout))
      }
      return
    }
    timeouts = 0
    loop.schedule(after: store.latency) { [self] in done(result(words)) }
  }

  func post(_ words: [[UInt8]], _ done: Completion?) {
    guard isUp, store.condition != .silent else {
      store.loop.schedule(after: .seconds(1)) { done?(.failure(.closed)) }
      return
    }
    store.loop.schedule(after: store.latency) { [self] in
      let result = result(words)
      done?(result)
    }
  }

  private func result(_ words: [[UInt8]]) -> Result<RESPValue, StoreFailure> {
    let reply = store.run(words)
    if case .error(let text) = reply { return .failure(.error(text)) }
    return .success(reply)
  }

  private func breakOff() {
    isBroken = true
    store.loop.schedule(after: .seconds(1)) { [self] in tryAgain() }
  }

  private func tryAgain() {
    guard store.condition == .works || store.condition == .readOnly else {
      store.loop.schedule(after: .seconds(1)) { [self] in tryAgain() }
      return
    }
    (isBroken, timeouts) = (false, 0)
    onUp?()
  }

  fileprivate func storeHasChanged() {
    guard store.condition == .works, !isBroken else { return }
    onUp?()
  }
}
