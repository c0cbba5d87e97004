// main.swift -- measures what scheduling costs: CPU for each refresh, memory for each name; prints one JSON object.
//
//   refresh-bench [NAMES [REFRESHES]]
//
// A virtual clock drives what the forwarder does at a due time, without the transfer and without the cache: pop, look
// whether the element is outdated, decide, spend, gather, take groups, and schedule the new entries. Besides,
// with every third refresh a client's question replaces an entry, which leaves an outdated element behind.

import DNSWire
import EventLoop
import Glibc
import Refresh

/// What is scheduled, as the cache would hold it.
struct Entry {
  var storedAt: Int64
  var lifetime: Int64
  var due: Int64
  var heat: Heat
  /// What the entry that the refresh brings will remember.
  var next: Heat
}

/// What travels. As a forwarder would it hashes a number that is at hand, not the octets of the name.
struct Question: Hashable, Sendable {
  let name: DomainName
  let index: Int

  func hash(into hasher: inout Hasher) { hasher.combine(index) }
}

/// What is measured.
struct Bench {
  private let names: Int
  private var entries: [Entry]
  private let questions: [Question]
  private let timing = RefreshTiming(fraction: 0.75, minimumTTL: 10 * Bench.second)
  private let policy = HeatPolicy(hotHits: 5, giveUpAfter: 3)
  private var budget = RefreshBudget(perMinute: 1_000_000, perDay: 1_000_000_000)
  private var gathering = RefreshGathering<Question>(mostNames: 5)
  private var random = JitterGenerator(seed: 1)
  private var queue = DueQueue()
  private(set) var compactions = 0

  private static let second: Int64 = 1_000_000_000
  private static let lifetimes: [Int64] = [60, 120, 300, 600, 1800, 3600]

  init(names: Int) {
    self.names = names
    let blank = Entry(storedAt: 0, lifetime: 0, due: 0, heat: .inactive, next: .inactive)
    entries = Array(repeating: blank, count: names)
    questions = (0..<names).map { Question(name: DomainName(text: "host\($0).bench.example")!, index: $0) }
  }

  /// Schedules every name once.
  mutating func fill() {
    for index in entries.indices {
      let lifetime = Bench.lifetimes[Int(random.next() % 6)] * Bench.second
      entries[index].lifetime = lifetime
      store(index, at: Int64(random.next() % UInt64(60 * Bench.second)), heat: .inactive)
    }
  }

  /// A new entry and its element.
  private mutating func store(_ index: Int, at now: Int64, heat: Heat) {
    let jitter = RefreshTiming.drawJitter(using: &random)
    guard let due = timing.due(storedAt: now, lifetime: entries[index].lifetime, jitter: jitter) else { return }
    entries[index].storedAt = now
    entries[index].due = due
    entries[index].heat = heat
    queue.insert(UInt64(index), due: due)
  }

  /// Advances the clock until `count` names have been refreshed; returns the number.
  mutating func refresh(_ count: Int) -> Int {
    var done = 0
    while done < count, let due = queue.earliestDue {
      let now = min(due, gathering.nextClosing ?? .max)
      while let element = queue.popFirst(dueBy: now) { lookAt(element, now) }
      for group in gathering.takeClosed(now: now) {
        guard budget.take(now: now) else { continue }
        done += group.members.count
        for member in group.members {
          store(member.name.index, at: now, heat: entries[member.name.index].next)
        }
      }
    }
    return done
  }

  private mutating func lookAt(_ element: DueQueue.Element, _ now: Int64) {
    let index = Int(element.ticket)
    let entry = entries[index]
    guard entry.due == element.due else { return }
    if random.next() % 3 == 0 { store(Int(random.next() % UInt64(names)), at: now, heat: .inactive) }
    let hits: UInt32 = entry.heat.isActive && random.next() % 2 == 0 ? 0 : 9
    guard case .refresh(let next) = policy.decide(hits: hits, heat: entry.heat, isOnKeepList: false) else {
      // It is no longer in use; another query keeps the number of scheduled names constant.
      store(index, at: now, heat: .inactive)
      return
    }
    entries[index].next = next
    let deadline = timing.gatheringDeadline(now: now, storedAt: entry.storedAt, lifetime: entry.lifetime)
    gathering.add(questions[index], [.ipv4, .ipv6], deadline: deadline)
    compactWhereCrowded()
  }

  private mutating func compactWhereCrowded() {
    guard queue.isCrowded else { return }
    compactions += 1
    // Not copied: both are read and written by one owner.
    entries.withUnsafeBufferPointer { entries in
      queue.compact { entries[Int($0.ticket)].due == $0.due }
    }
  }

  /// Pops and inserts that many times, at the present size.
  mutating func turnOver(_ count: Int) {
    for _ in 0..<count {
      guard let element = queue.popFirst(dueBy: .max) else { return }
      queue.insert(element.ticket, due: element.due + Int64(random.next() % UInt64(3600 * Bench.second)))
    }
  }
}

/// CPU time of this process in microseconds.
func processorTime() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
  return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// A line of /proc/self/status, in octets.
func memory(_ key: String) -> Int {
  guard let file = fopen("/proc/self/status", "r") else { return 0 }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 256)
  while fgets(&line, Int32(line.count), file) != nil {
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard text.hasPrefix(key + ":") else { continue }
    return (Int(text.filter(\.isNumber)) ?? 0) * 1024
  }
  return 0
}

/// Lets the kernel forget the highest resident size (proc(5), clear_refs).
func forgetPeak() {
  guard let file = fopen("/proc/self/clear_refs", "w") else { return }
  fputs("5", file)
  fclose(file)
}

let names = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 100_000
let wanted = CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 1_000_000
guard names > 0, wanted > 0 else {
  let usage = "usage: refresh-bench [NAMES [REFRESHES]]\n"
  write(STDERR_FILENO, usage, usage.utf8.count)
  exit(2)
}

var bench = Bench(names: names)
forgetPeak()
let before = memory("VmRSS")
bench.fill()
let filled = memory("VmHWM") - before
_ = bench.refresh(wanted / 4)
var begin = processorTime()
let done = bench.refresh(wanted)
let refreshing = (processorTime() - begin) / Double(done)
let running = memory("VmHWM") - before
begin = processorTime()
bench.turnOver(wanted)
let turning = (processorTime() - begin) / Double(wanted)
// An entry of the cache has to remember its heat, and when it is due.
let remembered = MemoryLayout<Heat>.size + MemoryLayout<Int64>.size

/// Two decimals.
func rounded(_ value: Double) -> Double { (value * 100).rounded() / 100 }

print(
  """
  {"names": \(names), "refreshes": \(done), "compactions": \(bench.compactions), \
  "cpu_us_per_refresh": \(rounded(refreshing)), "cpu_us_per_insert_and_pop": \(rounded(turning)), \
  "octets_per_name_filling": \(rounded(Double(filled) / Double(names) + Double(remembered))), \
  "octets_per_name_peak": \(rounded(Double(max(filled, running)) / Double(names) + Double(remembered)))}
  """)
