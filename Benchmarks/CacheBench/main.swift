// main.swift -- cache-bench [ROUNDS [FOLDER]]: what saving, loading, surveying and flushing 100,000 entries takes, and what
// it does to answers.
//
// While a cache is saved, or loaded into, surveyed or flushed, another thread looks up names as a listener does and takes the time of each
// look. A look during which the kernel took the processor away from that thread counts among "preempted" and not among
// the delays: that is the machine's doing. Waiting for a lock is not among those. A line is `figure value`; of the
// rounds, the best.

import DNSWire
import EventLoop
import Glibc
import MessageCache
import Persistence

let rounds = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) ?? 10 : 10
let folder = CommandLine.arguments.count > 2 ? CommandLine.arguments[2] : "/tmp"
let path = "\(folder)/cache-bench.\(getpid())"
let file = CacheFile(path: path)
let meanings = CacheMeanings(routes: ["default", "corp"], sources: [0: "", 1: "LocalDNS", 2: "provider"])
let start = CacheTime(boot: BootInstant.now.nanoseconds, wall: Int64(time(nil)) * 1_000_000_000)
let workload = Workload(entries: 100_000)
let cache = workload.filledCache(now: start.boot)

var figures = Figures()

func milliseconds(_ action: () -> Void) -> Double {
  let begin = BootInstant.now
  action()
  return Double((BootInstant.now - begin).nanoseconds) / 1e6
}

/// What the resolver's loop does in turns, between which other things come first. A turn's time is the processor's: what
/// else the machine does is not part of it.
@MainActor
func inTurns(_ name: String, _ turn: () -> Void, until isDone: () -> Bool) {
  var longest: Int64 = 0
  let total = milliseconds {
    while !isDone() {
      let begin = processorTime()
      turn()
      longest = max(longest, processorTime() - begin)
    }
  }
  figures.note("\(name)_ms", total)
  figures.note("\(name)_turn_longest_us", Double(longest) / 1000)
}

/// Nanoseconds that this thread has run.
func processorTime() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

for _ in 0..<rounds {
  let idle = Asker(cache, workload, now: start.boot)
  usleep(80_000)
  figures.note("alone", idle.end())

  figures.note("save_ms", milliseconds { _ = try? file.save(cache, meanings, at: start) })
  let duringSave = Asker(cache, workload, now: start.boot)
  figures.note("save_under_load_ms", milliseconds { _ = try? file.save(cache, meanings, at: start) })
  figures.note("save", duringSave.end())

  let quiet = workload.emptyCache()
  figures.note("load_ms", milliseconds { _ = file.load(into: quiet, meanings, at: start) })
  precondition(quiet.usage.entries == workload.count, "\(quiet.usage.entries) entries were loaded")
  let target = workload.emptyCache()
  let duringLoad = Asker(target, workload, now: start.boot)
  figures.note("load_under_load_ms", milliseconds { _ = file.load(into: target, meanings, at: start) })
  figures.note("load", duringLoad.end())

  let surveyed = Asker(target, workload, now: start.boot)
  var survey = CacheSurvey(of: target)
  var hits = 0
  inTurns("survey", { survey.advance(steps: 64) { record, _ in hits += Int(record.hits) } }, until: { survey.isDone })
  figures.note("survey", surveyed.end())

  let flushed = Asker(target, workload, now: start.boot)
  var removal = CacheRemoval(of: .everything, from: target)
  inTurns("flush", { removal.advance(steps: 32) }, until: { removal.isDone })
  figures.note("flush", flushed.end())
  precondition(target.usage.entries == 0, "\(target.usage.entries) entries are left")
}

var status = stat()
stat(path, &status)
unlink(path)
print("entries \(workload.count)")
print("file_octets \(status.st_size)")
figures.show()
