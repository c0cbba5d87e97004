// Support.swift -- folders that vanish, caches with all kinds of entries, and what a cache holds as values.

import DNSWire
import Glibc
import MessageCache
@testable import Persistence
import Synchronization
import TestSupport
import Testing

let second: Int64 = 1_000_000_000
/// The wall clock when the machine of the tests was started.
let epoch: Int64 = 1_800_000_000 * second

extension CacheTime {
  /// That many seconds after the machine was started.
  static func at(_ seconds: Int64) -> CacheTime { CacheTime(boot: seconds * second, wall: epoch + seconds * second) }
}

extension TemporaryFolder {
  var file: CacheFile { CacheFile(path: path(of: "cache")) }

  func read() -> [UInt8]? { read("cache") }
  func write(_ octets: [UInt8]) { write(octets, to: "cache") }
  func mode() -> mode_t? { mode("cache") }
}

/// Records what would be logged, from any thread.
final class Notes: Sendable {
  private let notes = Mutex<[CacheNote]>([])
  var all: [CacheNote] { notes.withLock { $0 } }
  func add(_ note: CacheNote) { notes.withLock { $0.append(note) } }
}

extension MessageCache {
  static func empty(entries: Int = 200_000) -> MessageCache {
    MessageCache(CacheBounds(maxOctets: 64 << 20, maxEntries: entries))
  }

  func insert(
    _ name: String, type: UInt16 = 1, route: UInt16 = 0, _ response: ComposedResponse? = nil, at seconds: Int64 = 0,
    _ life: EntryLife = EntryLife(lifetime: 300)
  ) {
    let name = DomainName(text: name)!
    let record = ResourceRecord(owner: name, type: .a, ttl: life.lifetime, rdata: [192, 0, 2, 1])
    withKey(name, type: type, route: route) {
      _ = insert($0, response ?? ComposedResponse(.noError, to: name, answers: [record])!, now: seconds * second, life)
    }
  }

  func peek(_ name: String, type: UInt16 = 1, route: UInt16 = 0, at seconds: Int64, orStale: Bool = false)
    -> CachedResponse?
  {
    withKey(DomainName(text: name)!, type: type, route: route) {
      peek($0, now: seconds * second, orStale: orStale)
    }
  }

  /// Looks up everything that it holds, as the hot path does; gives the number of answers.
  func useAll(now: Int64) -> Int {
    var keys: [[UInt8]] = []
    forEachRecord(now: now) { record in
      keys.append(Array(record.key))
      return true
    }
    let output = UnsafeMutablePointer<UInt8>.allocate(capacity: 65_535)
    defer { output.deallocate() }
    var answers = 0
    for octets in keys {
      guard let (name, scope) = CacheScope.parts(of: octets) else { continue }
      var buffer = octets + Array(repeating: 0, count: CacheKey.longest)
      buffer.withUnsafeMutableBufferPointer {
        var head = ResponseHead()
        let key = key(in: $0.baseAddress!, nameLength: name.octets.count, scope)
        for _ in 0..<2 where find(key, now: now, servesStale: true, into: output, capacity: 65_535, &head).isAnswer {
          answers += 1
        }
      }
    }
    return answers
  }

  private func withKey<Value>(_ name: DomainName, type: UInt16, route: UInt16, _ body: (CacheKey) -> Value) -> Value {
    var buffer = name.lowercased.octets + Array(repeating: 0, count: CacheKey.longest)
    let scope = CacheScope(type: type, dnssecOK: false, checkingDisabled: false, route: route, network: 7)
    return buffer.withUnsafeMutableBufferPointer {
      body(key(in: $0.baseAddress!, nameLength: name.octets.count, scope))
    }
  }

  /// One of each kind: an alias with addresses that rotate, NXDOMAIN, NODATA, data that never expires.
  func fill(at seconds: Int64 = 0) {
    let name = DomainName(text: "www.example.com")!
    let alias = ResourceRecord(
      owner: name, type: .cname, ttl: 60, rdata: DomainName(text: "edge.example.net")!.octets)
    let addresses = (1...3).map { ResourceRecord(owner: name, type: .a, ttl: 60, rdata: [192, 0, 2, $0]) }
    var response = ComposedResponse(.noError, to: name, answers: [alias] + addresses)!
    response.isAuthenticated = true
    response.extendedError = .staleAnswer
    var life = EntryLife(lifetime: 60)
    life.staleFor = 3600
    life.isServedStale = true
    life.source = 2
    life.heat = 9
    life.isInUse = true
    insert("www.example.com", route: 1, response, at: seconds, life)
    var nxdomain = ComposedResponse(.nxDomain)
    nxdomain.isForEverySubnet = false
    insert("no.example.com", type: 0, nxdomain, at: seconds, EntryLife(lifetime: 30))
    insert("empty.example.com", type: 28, ComposedResponse(.noError), at: seconds, EntryLife(lifetime: 30))
    var forever = EntryLife(lifetime: 100)
    forever.isImmutable = true
    insert("pinned.example.com", route: 2, at: seconds, forever)
    insert("plain.example.com", at: seconds)
  }

  /// What it holds, in words.
  func contents(now: Int64) -> Set<String> {
    var contents = Set<String>()
    forEachRecord(now: now) { record in
      contents.insert(
        "\(Array(record.key)) \(Array(record.body)) \(record.storedAt) \(record.life) \(record.hits) \(record.answers) "
          + "\(record.authorities) \(record.extendedError) \(record.rotationStart) \(record.rotationCount) "
          + "\(record.rotationSize) \(record.responseCode) \(record.isAuthenticated) \(record.isAuthoritative) "
          + "\(record.isForEverySubnet)")
      return true
    }
    return contents
  }
}

extension CacheMeanings {
  static let usual = CacheMeanings(routes: ["default", "corp", "pinned"], sources: [0: "", 1: "LocalDNS", 2: "a"])
}

/// A number of entries that are in the cache.
func kept(_ count: Int) -> CacheLoad { .loaded(CacheCounts(loaded: count)) }
