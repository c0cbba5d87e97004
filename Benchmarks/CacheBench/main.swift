// main.swift -- cache-bench [ROUNDS [FOLDER]]: what saving and loading 100,000 entries takes, and what it does to answers.
//
// While a cache is saved, or loaded into, another thread looks up names as a listener does and takes the time of each
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
}

var status = stat()
stat(path, &status)
unlink(path)
print("entries \(workload.count)")
print("file_octets \(status.st_size)")
figures.show()
