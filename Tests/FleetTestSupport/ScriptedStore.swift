// ScriptedStore.swift -- a store in memory on a virtual clock, for several daemons, and what can be wrong with it.

import DNSWire
import EventLoop
import Store
import TestSupport

/// The server: strings, counters, a sorted set and a stream, as far as the fleet uses them.
package final class ScriptedStore: @unchecked Sendable {
  package enum Condition {
    case works
    /// It takes commands and never answers.
    case silent
    /// Connections are refused.
    case down
    /// Writes are refused.
    case readOnly
  }

  package struct Value {
    package var octets: [UInt8]
    package var expiresAt: BootInstant?

    package init(octets: [UInt8], expiresAt: BootInstant?) { (self.octets, self.expiresAt) = (octets, expiresAt) }
  }

  package var condition = Condition.works { didSet { reconnect() } }
  /// The time between a command and its reply.
  package var latency = Duration.microseconds(200)
  /// Commands that the user may not send.
  package var refused: Set<String> = []
  /// The key of an epoch that is another one each time.
  package var changesEpoch: [UInt8]?
  /// By how many seconds its clock is ahead.
  package var clockOffset: Int64 = 0
  /// By how many milliseconds its replies to TIME are wrong.
  package var timeError: Int64 = 0
  /// Also those that have expired since they were last asked for.
  package var values: [[UInt8]: Value] = [:]
  package var members: [[UInt8]: Int64] = [:]
  /// Commands by name.
  package private(set) var commands: [String: Int] = [:]
  let loop: SimulatedLoop
  private var links: [ScriptedLink] = []
  /// The stream of flushes: entries by when they were added, in milliseconds of the store's clock, and their number then.
  private var entries: [(time: Int64, number: Int64, fields: [[UInt8]])] = []
  private var streams: [ScriptedStream] = []

  package init(on loop: SimulatedLoop) { self.loop = loop }

  package func link() -> ScriptedLink {
    let link = ScriptedLink(self)
    links.append(link)
    return link
  }

  /// A connection that reads the stream of flushes.
  package func stream() -> ScriptedStream {
    let stream = ScriptedStream(self)
    streams.append(stream)
    return stream
  }

  /// It has lost everything.
  package func flushAll() { (values, members, entries) = ([:], [:], []) }

  package var keys: [String] {
    values.filter { !isOver($0.value) }.keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
  }

  /// All links are made again, as after a restart.
  package func reconnect() {
    for link in links { link.storeHasChanged() }
    // One that is silent or takes no writes keeps its connections.
    if condition == .works || condition == .down { for stream in streams { stream.connect() } }
  }

  /// Milliseconds of its clock.
  package var time: Int64 { (1_800_000_000 + clockOffset) * 1_000 + loop.now.nanoseconds / 1_000_000 }

  private func isOver(_ value: Value) -> Bool { value.expiresAt.map { $0 <= loop.now } ?? false }

  /// Runs a command at once.
  @discardableResult
  package func run(_ words: [[UInt8]]) -> RESPValue {
    let name = String(decoding: words[0], as: UTF8.self)
    commands[name, default: 0] += 1
    func number(_ index: Int) -> Int64 {
      switch String(decoding: words[index], as: UTF8.self) {
      case "-inf": .min
      case "+inf": .max
      case let text: Int64(text)!
      }
    }
    if refused.contains(name) { return .error("NOPERM this user has no permissions to run '\(name)'") }
    let writes = ["SET", "DEL", "INCRBY", "ZADD", "ZREMRANGEBYSCORE", "XADD"]
    if condition == .readOnly, writes.contains(name) {
      return .error("READONLY You can't write against a read only replica.")
    }
    if words.count > 1, let value = values[words[1]], isOver(value) { values[words[1]] = nil }
    switch name {
    case "GET" where words[1] == changesEpoch: return .bulk(Array("\(commands["GET", default: 0])".utf8))
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
      let time = time + timeError
      return .array([.bulk(Array("\(time / 1_000)".utf8)), .bulk(Array("\(time % 1_000 * 1_000)".utf8))])
    case "ZADD":
      members[words[3]] = number(2)
      return .integer(1)
    case "ZREMRANGEBYSCORE":
      members = members.filter { !(number(2)...number(3)).contains($0.value) }
      return .integer(0)
    case "ZRANGE":
      let sorted = members.sorted {
        $0.value == $1.value ? $0.key.lexicographicallyPrecedes($1.key) : $0.value < $1.value
      }
      func index(_ number: Int64) -> Int { Int(number < 0 ? max(0, Int64(sorted.count) + number) : number) }
      let range = (index(number(2))..<max(index(number(2)), index(number(3)) + 1)).clamped(to: sorted.indices)
      return .array(sorted[range].flatMap { [.bulk($0.key), .bulk(Array("\($0.value)".utf8))] })
    case "XADD": return add(Array(words[6...]), most: Int(number(4)))
    case "XREAD": return read(after: words[5], most: Int(number(2)), of: words[4])
    default: return .error("ERR unknown command")
    }
  }
}

extension ScriptedStore {
  /// Adds an entry and wakes those that read; the oldest ones are dropped.
  private func add(_ fields: [[UInt8]], most: Int) -> RESPValue {
    var id = (time: time, number: Int64(0))
    if let last = entries.last, last.time >= id.time { id = (last.time, last.number + 1) }
    entries.append((id.time, id.number, fields))
    if entries.count > most { entries.removeFirst(entries.count - most) }
    for stream in streams { stream.wake() }
    return .bulk(Array("\(id.time)-\(id.number)".utf8))
  }

  /// Adds an entry with a time that its clock does not have.
  package func entry(at time: Int64, number: Int64 = 0, _ fields: [[UInt8]]) {
    entries.append((time, number, fields))
    for stream in streams { stream.wake() }
  }

  /// The entries after one of them, as XREAD gives them; null for none.
  private func read(after id: [UInt8], most: Int, of key: [UInt8]) -> RESPValue {
    let parts = String(decoding: id, as: UTF8.self).split(separator: "-").compactMap { Int64($0) }
    let found = entries.filter { ($0.time, $0.number) > (parts[0], parts[1]) }.prefix(most)
    guard !found.isEmpty else { return .null }
    let replies = found.map { entry in
      RESPValue.array([
        .bulk(Array("\(entry.time)-\(entry.number)".utf8)), .array(entry.fields.map { .bulk($0) }),
      ])
    }
    return .array([.array([.bulk(key), .array(replies)])])
  }
}

/// One daemon's connection that waits for flushes.
package final class ScriptedStream: @unchecked Sendable {
  private let store: ScriptedStore
  private var reading: (words: () -> [[UInt8]], take: (RESPValue) -> Bool)?
  private var isWoken = false
  private var isConnected = false
  /// Whether the daemon is not connected.
  package var isAway = false { didSet { connect() } }
  /// Called when it is connected, and when it is not any more.
  package var onChange: ((Bool) -> Void)?
  /// The time between an entry and its arrival.
  package var latency: Duration?

  package init(_ store: ScriptedStore) { self.store = store }

  /// Reads from now on: `words` gives the next command, `take` gets its reply.
  package func read(_ words: @escaping () -> [[UInt8]], _ take: @escaping (RESPValue) -> Bool) {
    reading = (words, take)
    connect()
  }

  /// Connects again, if the store takes connections.
  package func connect() {
    if isConnected { onChange?(false) }
    isConnected = !isAway && (store.condition == .works || store.condition == .readOnly)
    guard isConnected else { return }
    onChange?(true)
    wake()
  }

  fileprivate func wake() {
    guard !isWoken, reading != nil else { return }
    isWoken = true
    store.loop.schedule(after: latency ?? store.latency) { [weak self] in self?.look() }
  }

  private func look() {
    isWoken = false
    guard isConnected, let reading else { return }
    let words = reading.words()
    let isBlocking = words[1] == Array("BLOCK".utf8)
    let reply = store.run(isBlocking ? [words[0]] + words[3...] : words)
    guard reply != .null || !isBlocking else { return }
    if reading.take(reply) { wake() }
  }
}

/// One daemon's connection, with a breaker that opens for a second after three timeouts.
package final class ScriptedLink: StoreLink, @unchecked Sendable {
  /// What a PING may take that closes the breaker.
  private static let timeout = Duration.milliseconds(20)
  private let store: ScriptedStore
  private var timeouts = 0
  private var isBroken = false
  /// Whether the daemon has been stopped.
  package var isCut = false
  package var isUp: Bool { !isBroken && !isCut && store.condition != .down }
  package var mayWrite: Bool { store.condition != .readOnly }
  /// Called when it can be used again.
  package var onUp: (() -> Void)?

  package init(_ store: ScriptedStore) { self.store = store }

  package func requestUse() {}

  package func call(_ words: [[UInt8]], timeout: Duration, _ done: @escaping Completion) {
    let loop = store.loop
    guard isUp else {
      loop.schedule(after: .zero) { done(.failure(.open)) }
      return
    }
    guard store.condition != .silent, store.latency <= timeout else {
      // A slow store does what it was told nevertheless.
      if store.condition != .silent { loop.schedule(after: store.latency) { [self] in _ = result(words) } }
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

  package func post(_ words: [[UInt8]], _ done: Completion?) {
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
    guard store.condition == .works || store.condition == .readOnly, store.latency <= ScriptedLink.timeout else {
      store.loop.schedule(after: .seconds(1)) { [self] in tryAgain() }
      return
    }
    (isBroken, timeouts) = (false, 0)
    if !isCut { onUp?() }
  }

  fileprivate func storeHasChanged() {
    guard store.condition == .works, !isBroken, !isCut else { return }
    onUp?()
  }
}
