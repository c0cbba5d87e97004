// ChildProcess.swift -- a program that a test has started: its output, its end, its signals.

import Foundation

/// A running or ended program. Ended by its pid when the last reference goes.
final class ChildProcess: @unchecked Sendable {
  /// How a program ended.
  enum Ending: Equatable {
    case exited(Int32)
    case killed(signal: Int32)
  }

  /// Where a program writes.
  enum Stream: Int {
    case output, error
  }

  let name: String
  let pid: pid_t
  private let condition = NSCondition()
  /// Where its streams are read; -1 after their end.
  private var readingEnds: [Int32] = []
  private var octets: [[UInt8]] = [[], []]
  private var ending: Ending?

  /// Starts a program that is found by its path or in `PATH`.
  ///
  /// - Parameters:
  ///   - environment: all of the program's environment besides `PATH`.
  ///   - descriptors: what the program inherits, from 3 on.
  init(_ arguments: [String], environment: [String: String] = [:], descriptors: [Int32] = []) throws {
    name = arguments[0].split(separator: "/").last.map(String.init) ?? arguments[0]
    // The kernel ends it should the tests end without having done so. setpriv becomes the program: the pid is the same.
    let arguments = ["setpriv", "--pdeathsig", "KILL", "--"] + arguments
    var variables = ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"]
    // A crash shall be a crash at once, not after a minute of symbols.
    variables["SWIFT_BACKTRACE"] = "enable=no"
    variables.merge(environment) { $1 }
    let pipes = [try Pipe(), try Pipe()]
    pid = try spawn(arguments, variables.map { "\($0)=\($1)" }, pipes, descriptors)
    for pipe in pipes { close(pipe.write) }
    readingEnds = pipes.map(\.read)
    Thread { [self] in collect() }.start()
  }

  /// Runs a program to its end. The bound is there for a program that never ends: seconds of work on an idle machine take
  /// many times as long while all tests begin at once.
  static func run(
    _ arguments: [String], environment: [String: String] = [:], within duration: Duration = .seconds(120)
  ) throws -> (ending: Ending, output: String, error: String) {
    let process = try ChildProcess(arguments, environment: environment)
    let ending = try process.waitForEnd(within: duration)
    return (ending, process.text(.output), process.text(.error))
  }

  /// What the program has written so far, also what is still in the pipe.
  func text(_ stream: Stream) -> String {
    condition.withLock {
      _ = take(stream.rawValue)
      return String(decoding: octets[stream.rawValue], as: UTF8.self)
    }
  }

  /// Waits until what was written has something that `find` finds.
  @discardableResult
  func wait<Value>(
    for what: String, in stream: Stream, within duration: Duration = .seconds(20), _ find: (String) -> Value?
  ) throws -> Value {
    let deadline = Deadline(duration)
    condition.lock()
    defer { condition.unlock() }
    while true {
      let text = String(decoding: octets[stream.rawValue], as: UTF8.self)
      // Whole lines only: a port may be half there.
      if let end = text.lastIndex(of: "\n"), let value = find(String(text[...end])) { return value }
      guard ending == nil else { throw Failure("\(name) ended before \(what): \(describe())") }
      guard condition.wait(until: deadline.date) || !deadline.isOver else {
        throw Failure("\(name): no \(what) within \(duration): \(describe())")
      }
    }
  }

  func waitForEnd(within duration: Duration = .seconds(10)) throws -> Ending {
    let deadline = Deadline(duration)
    condition.lock()
    defer { condition.unlock() }
    while true {
      if let ending { return ending }
      guard condition.wait(until: deadline.date) || !deadline.isOver else {
        throw Failure("\(name) did not end within \(duration): \(describe())")
      }
    }
  }

  /// Sends a signal, unless the program has ended.
  func signal(_ number: Int32) {
    condition.withLock { if ending == nil { kill(pid, number) } }
  }

  /// Ends the program: by SIGTERM, and after five seconds by SIGKILL.
  @discardableResult
  func end() -> Ending? {
    signal(SIGTERM)
    if let ending = try? waitForEnd(within: .seconds(5)) { return ending }
    signal(SIGKILL)
    return try? waitForEnd(within: .seconds(5))
  }

  private func describe() -> String {
    let texts = octets.map { String(decoding: $0.suffix(4_000), as: UTF8.self) }
    return "\(ending.map { "\($0)" } ?? "running")\n\(texts.joined(separator: "\n"))"
  }

  /// Takes all that a pipe holds. The caller has the lock.
  ///
  /// - Returns: false if the program has closed its end.
  private func take(_ index: Int) -> Bool {
    guard readingEnds[index] >= 0 else { return false }
    var block = [UInt8](repeating: 0, count: Pipe.capacity)
    let count = read(readingEnds[index], &block, block.count)
    guard count > 0 else { return count < 0 && (errno == EINTR || errno == EAGAIN) }
    octets[index] += block[..<count]
    condition.broadcast()
    return true
  }

  /// Reads until the program has closed both of its streams, then waits for its end.
  private func collect() {
    var open = condition.withLock { readingEnds.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) } }
    while open.contains(where: { $0.fd >= 0 }) {
      poll(&open, nfds_t(open.count), -1)
      for index in open.indices where open[index].fd >= 0 && open[index].revents != 0 {
        condition.withLock {
          if take(index) { return }
          close(readingEnds[index])
          (readingEnds[index], open[index].fd) = (-1, -1)
        }
      }
    }
    // Looks without taking: only under the lock may the pid become free for another process.
    var information = siginfo_t()
    while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    condition.withLock {
      var status: Int32 = 0
      waitpid(pid, &status, 0)
      ending = status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: status & 0x7F)
      condition.broadcast()
    }
  }
}

/// A pipe that no other program inherits. Reading does not wait.
private struct Pipe {
  /// The most octets that wait in a pipe where a page has 4 KiB (pipe(7)).
  static let capacity = 1 << 16
  let read: Int32
  let write: Int32

  init() throws {
    var ends: [Int32] = [0, 0]
    guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Failure("no pipe: \(String(cString: strerror(errno)))") }
    // The flag belongs to this end alone.
    let isSet = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0
    precondition(isSet)
    (read, write) = (ends[0], ends[1])
  }
}

private func spawn(
  _ arguments: [String], _ environment: [String], _ pipes: [Pipe], _ descriptors: [Int32]
) throws -> pid_t {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
  posix_spawn_file_actions_adddup2(&actions, pipes[0].write, 1)
  posix_spawn_file_actions_adddup2(&actions, pipes[1].write, 2)
  // First to numbers where none of them stands in another's way.
  let aside = Int32(1_000)
  for (index, descriptor) in descriptors.enumerated() {
    posix_spawn_file_actions_adddup2(&actions, descriptor, aside + Int32(index))
  }
  for index in descriptors.indices {
    posix_spawn_file_actions_adddup2(&actions, aside + Int32(index), 3 + Int32(index))
  }
  posix_spawn_file_actions_addclosefrom_np(&actions, 3 + Int32(descriptors.count))
  var attributes = posix_spawnattr_t()
  posix_spawnattr_init(&attributes)
  defer { posix_spawnattr_destroy(&attributes) }
  // The test process may ignore or block signals that the program counts on.
  var signals = sigset_t()
  sigemptyset(&signals)
  posix_spawnattr_setsigmask(&attributes, &signals)
  for signal in [SIGPIPE, SIGTERM, SIGINT] { sigaddset(&signals, signal) }
  posix_spawnattr_setsigdefault(&attributes, &signals)
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
  var argumentPointers = arguments.map { strdup($0) } + [nil]
  var environmentPointers = environment.map { strdup($0) } + [nil]
  defer { (argumentPointers + environmentPointers).forEach { free($0) } }
  var pid: pid_t = 0
  let failure = posix_spawnp(&pid, arguments[0], &actions, &attributes, &argumentPointers, &environmentPointers)
  guard failure == 0 else { throw Failure("cannot start \(arguments[0]): \(String(cString: strerror(failure)))") }
  return pid
}
