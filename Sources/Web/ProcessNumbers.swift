// ProcessNumbers.swift -- reads the kernel's figures for the standard `process_` metrics of Prometheus.

import Files
import Glibc

/// Figures of this process; nil if the kernel does not report one.
struct ProcessNumbers {
  /// CPU time of all threads, user and system, in seconds.
  var cpuSeconds: Double
  /// The start time in seconds since 1970. It never changes, even if the clock is set.
  var startTime: Double?
  var residentOctets: Int?
  var virtualOctets: Int?
  var threads: Int?
  var descriptors: Int?
  /// The soft limit on open descriptors.
  var mostDescriptors: Int?

  static var now: ProcessNumbers {
    var numbers = ProcessNumbers(cpuSeconds: seconds(CLOCK_PROCESS_CPUTIME_ID))
    if let fields = status() {
      // proc(5): threads are field 20, the start in ticks since boot field 22, then the sizes.
      numbers.threads = fields[20]
      numbers.virtualOctets = fields[23]
      numbers.residentOctets = fields[24].map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }
    numbers.startTime = startTime
    // Without the one that reads the folder.
    numbers.descriptors = Folder.names(in: "/proc/self/fd").map { max(0, $0.count - 1) }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      numbers.mostDescriptors = Int(clamping: limit.rlim_cur)
    }
    return numbers
  }

  /// Computed once: repeated computations would differ slightly, and Prometheus takes a change for a restart.
  /// The kernel reports the start in hundredths of a second.
  private static let startTime: Double? = status()?[22].map { ticks in
    let sinceBoot = Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
    return ((seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME) + sinceBoot) * 100).rounded() / 100
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
  }

  /// The fields of /proc/self/stat by their numbers in proc(5), from the third on. The second, the program's name, may
  /// contain spaces and parentheses.
  private static func status() -> [Int: Int]? {
    guard let octets = try? WholeFile.read("/proc/self/stat", limit: 4096),
      let end = octets.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    let words = String(decoding: octets[(end + 1)...], as: UTF8.self).split(separator: " ")
    var fields: [Int: Int] = [:]
    for (index, word) in words.enumerated() { fields[index + 3] = Int(word) }
    return fields
  }
}
