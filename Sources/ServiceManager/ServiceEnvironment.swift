// ServiceEnvironment.swift -- what a service manager says in the environment: where to report, how often, sockets.

import Glibc

/// The variables of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3).
public struct ServiceEnvironment: Sendable, Equatable {
  /// Where states are reported; nil where nobody wants to know.
  public var notifySocket: String?
  /// By when after the last sign of life the next one has to come; nil where nobody waits for one.
  public var watchdogTimeout: Duration?
  /// The descriptors that were handed over, with their names, which may be empty.
  public var descriptors: [HandedDescriptor] = []

  /// One descriptor that was handed over.
  public struct HandedDescriptor: Sendable, Equatable {
    /// The descriptor.
    public var number: Int32
    /// `FileDescriptorName=` of its unit, or the unit's name; empty where it has none.
    public var name: String
  }

  private static let variables = [
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
  ]
  /// Where descriptors that are handed over begin.
  private static let firstDescriptor: Int32 = 3
  /// More of them are a mistake.
  private static let mostDescriptors: Int32 = 1024

  /// Reads the variables and removes them, so that no other program takes them for its own. Before there are threads.
  public static func take() -> ServiceEnvironment {
    let taken = ServiceEnvironment(process: getpid()) { name in getenv(name).map { String(cString: $0) } }
    for name in variables { unsetenv(name) }
    return taken
  }

  /// What the variables mean for a process; those that are meant for another one, or make no sense, do not count.
  public init(process: pid_t, _ variable: (String) -> String?) {
    notifySocket = variable("NOTIFY_SOCKET").flatMap { $0.isEmpty ? nil : $0 }
    let isWatched = variable("WATCHDOG_PID").map { $0 == "\(process)" } ?? true
    if isWatched, let microseconds = variable("WATCHDOG_USEC").flatMap(Int64.init), microseconds > 0 {
      watchdogTimeout = .microseconds(microseconds)
    }
    guard variable("LISTEN_PID") == "\(process)", let count = variable("LISTEN_FDS").flatMap(Int32.init), count > 0,
      count <= ServiceEnvironment.mostDescriptors
    else { return }
    let names = (variable("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
    descriptors = (0..<count).map { index in
      let name = names.count == Int(count) ? String(names[Int(index)]) : ""
      return HandedDescriptor(number: ServiceEnvironment.firstDescriptor + index, name: name)
    }
  }
}
