// KnownResolvers.swift -- what is known of each plain resolver: whether it is alive, and how it can be asked.
//
// One question that a resolver does not answer says nothing about others: many drop AAAA or HTTPS, or take long for one
// name. A resolver is silent if nothing has come from it for 2 s, although three different questions were sent to it
// since its last sign of life. Then it is asked beside the others, and no question waits for it: any reply with the
// right ID ends the silence, so that a client's dead names do not take the network's names from others.
//
// Some resolvers, or devices in front of them, drop or refuse queries with an OPT record, UDP, or TCP. What works is
// remembered for 10 min (RFC 6891 section 6.2.2), and that TCP fails for 10 s.

import DNSWire
import EventLoop

/// How to ask a resolver.
struct Manner {
  /// Over TCP from the start.
  var isOverTCP = false
  /// With an OPT record.
  var hasEDNS = true
  /// Whether the OPT record may be why there is no answer: the resolver has not answered a query with one yet.
  var doubtsEDNS = true
  /// Whether TCP may be tried; false for a while after it has failed.
  var mayConnect = true
}

/// The memory of one client. Its loop's thread only; it does no I/O.
struct KnownResolvers {
  private struct Known {
    /// Hashes of different questions since the last sign of life, `silentQuestions` at most.
    var unanswered: [Int] = []
    /// When the first of them was sent.
    var waitsSince = BootInstant.longAgo
    /// Whether it was asked last since then.
    var isDemoted = false
    /// Until when it counts as supporting EDNS, as not supporting it, as dropping UDP, as refusing TCP.
    var knowsEDNSUntil = BootInstant.longAgo
    var lacksEDNSUntil = BootInstant.longAgo
    var dropsUDPUntil = BootInstant.longAgo
    var failsTCPUntil = BootInstant.longAgo
    var lastDatagram = BootInstant.longAgo
    /// When something came over TCP last.
    var lastStream = BootInstant.longAgo
  }

  private var all: [PlainResolver: Known] = [:]
  /// Hashes of names with a resolver that gave data for them; each has one place.
  private var names = [Int](repeating: 0, count: 512)
  /// How often a resolver became silent.
  private(set) var demotions: UInt64 = 0

  private static let silentQuestions = 3
  private static let silence = Duration.seconds(2)
  /// How long the memory of what works is used (RFC 6891 section 6.2.2).
  static let memory = Duration.seconds(600)
  /// How long TCP is not tried after it has failed.
  static let withoutTCP = Duration.seconds(10)
  /// A resolver that has sent something within this time over UDP or TCP does not drop that, whatever one question shows.
  private static let recently = Duration.seconds(10)
  /// Maximum resolvers remembered; a machine has few.
  private static let limit = 256

  /// Forgets all resolvers and names.
  mutating func forget() {
    all = [:]
    for place in names.indices { names[place] = 0 }
  }

  // MARK: Order

  /// The places of the resolvers in the order in which to ask them: silent ones last, otherwise as given.
  mutating func order(_ resolvers: [PlainResolver], at now: BootInstant) -> [Int] {
    guard resolvers.count > 1 else { return Array(resolvers.indices) }
    let last = resolvers.map { isLast($0, at: now) }
    return resolvers.indices.filter { !last[$0] } + resolvers.indices.filter { last[$0] }
  }

  private mutating func isLast(_ resolver: PlainResolver, at now: BootInstant) -> Bool {
    guard let known = all[resolver], known.unanswered.count == Self.silentQuestions,
      now - known.waitsSince >= Self.silence
    else { return false }
    if !known.isDemoted {
      demotions += 1
      change(resolver) { $0.isDemoted = true }
    }
    return true
  }

  /// Whether a resolver is asked last.
  func isDemoted(_ resolver: PlainResolver) -> Bool { all[resolver]?.isDemoted ?? false }

  /// Notes a question before it is sent.
  ///
  /// - Returns: whether its reply is worth waiting for even when the question is decided, as a sign of life.
  mutating func asks(_ resolver: PlainResolver, _ question: Question, at now: BootInstant) -> Bool {
    let hash = question.hashValue
    return change(resolver) { known in
      if known.isDemoted { return true }
      guard known.unanswered.count < Self.silentQuestions, !known.unanswered.contains(hash) else { return false }
      if known.unanswered.isEmpty { known.waitsSince = now }
      known.unanswered.append(hash)
      return true
    }
  }

  /// Notes any reply with the right ID: a sign of life.
  mutating func hears(_ resolver: PlainResolver, overTCP: Bool, at now: BootInstant) {
    change(resolver) { known in
      known.unanswered.removeAll(keepingCapacity: true)
      known.isDemoted = false
      if overTCP {
        (known.lastStream, known.failsTCPUntil) = (now, now)
      } else {
        (known.lastDatagram, known.dropsUDPUntil) = (now, now)
      }
    }
  }

  // MARK: Manner

  func manner(toward resolver: PlainResolver, at now: BootInstant) -> Manner {
    guard let known = all[resolver] else { return Manner(isOverTCP: resolver.isOverTCP) }
    return Manner(
      isOverTCP: resolver.isOverTCP || now < known.dropsUDPUntil, hasEDNS: now >= known.lacksEDNSUntil,
      doubtsEDNS: now >= known.knowsEDNSUntil, mayConnect: now >= known.failsTCPUntil)
  }

  /// Notes an answer to a query with an OPT record.
  mutating func knowsEDNS(_ resolver: PlainResolver, at now: BootInstant) {
    change(resolver) { known in
      known.knowsEDNSUntil = now + Self.memory
      known.lacksEDNSUntil = now
    }
  }

  /// Notes an answer to a query that was repeated without OPT record. It says nothing against EDNS with a resolver that
  /// supports it for other names.
  mutating func lacksEDNS(_ resolver: PlainResolver, at now: BootInstant) {
    change(resolver) { if now >= $0.knowsEDNSUntil { $0.lacksEDNSUntil = now + Self.memory } }
  }

  /// Notes an answer over TCP after silence over UDP.
  mutating func dropsUDP(_ resolver: PlainResolver, at now: BootInstant) {
    change(resolver) { if now - $0.lastDatagram >= Self.recently { $0.dropsUDPUntil = now + Self.memory } }
  }

  /// Notes that nothing came over TCP in time. If something came a moment ago, it is the name that takes its time.
  mutating func isSilentOverTCP(_ resolver: PlainResolver, at now: BootInstant) {
    if now - (all[resolver]?.lastStream ?? .longAgo) >= Self.recently { failsTCP(resolver, at: now) }
  }

  /// Notes that TCP has failed.
  mutating func failsTCP(_ resolver: PlainResolver, at now: BootInstant) {
    change(resolver) { known in
      known.failsTCPUntil = now + Self.withoutTCP
      known.dropsUDPUntil = now
    }
  }

  @discardableResult
  private mutating func change<Value>(_ resolver: PlainResolver, _ body: (inout Known) -> Value) -> Value {
    if all.count >= Self.limit, all[resolver] == nil { all = [:] }
    return body(&all[resolver, default: Known()])
  }

  // MARK: Names

  /// Notes that a resolver has data of a name.
  mutating func gives(_ resolver: PlainResolver, _ name: DomainName) {
    let (place, hash) = trace(resolver, name)
    names[place] = hash
  }

  /// Whether a resolver has given data of a name; false too if that was forgotten.
  func hasGiven(_ resolver: PlainResolver, _ name: DomainName) -> Bool {
    let (place, hash) = trace(resolver, name)
    return names[place] == hash
  }

  private func trace(_ resolver: PlainResolver, _ name: DomainName) -> (place: Int, hash: Int) {
    var hasher = Hasher()
    hasher.combine(resolver)
    hasher.combine(name)
    let hash = hasher.finalize() | 1
    return (Int(UInt(bitPattern: hash) >> 8) % names.count, hash)
  }
}

extension BootInstant {
  /// Before anything happened, and no overflow away from now.
  fileprivate static let longAgo = BootInstant(nanoseconds: .min / 2)
}
