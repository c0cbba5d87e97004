// ServiceEnvironment.swift -- the service manager's environment variables: notify socket, watchdog, passed sockets.

import Glibc

/// The variables of sd_notify(3), sd_watchdog_enabled(3) and sd_listen_fds(3).
public struct ServiceEnvironment: Sendable, Equatable {
  /// The socket for state changes; nil if the service manager wants none.
  public var notifySocket: String?
  /// The longest time between two watchdog messages; nil if there is no watchdog.
  public var watchdogTimeout: Duration?
  /// The passed descriptors (socket activation).
  public var descriptors: [HandedDescriptor] = []

  /// A passed descriptor.
  public struct HandedDescriptor: Sendable, Equatable {
    public var number: Int32
    /// `FileDescriptorName=` of its unit, or the unit's name; may be empty.
    public var name: String
  }

  private static let variables = [
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
  ]
  /// SD_LISTEN_FDS_START: the number of the first passed descriptor.
  private static let firstDescriptor: Int32 = 3
  /// A larger LISTEN_FDS is ignored.
  private static let mostDescriptors: Int32 = 1024

  /// Reads the variables and removes them, so that child processes do not inherit them. Call it before any thread starts.
  public static func take() -> ServiceEnvironment {
    let taken = ServiceEnvironment(process: getpid()) { name in getenv(name).map { String(cString: $0) } }
    for name in variables { unsetenv(name) }
    return taken
  }

  /// Interprets the variables for a process; ignores those that name another process or are invalid.
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
