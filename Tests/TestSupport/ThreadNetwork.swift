// ThreadNetwork.swift -- a network of the test's own, by the kernel: namespaces(7).
//
// A namespace belongs to a thread and ends with it, so nothing is left behind in any case.

import EventLoop
import Glibc

/// A machine, named by the test, and a router that it is joined to by an Ethernet cable.
public final class ThreadNetwork: Sendable {
  /// Why there is no such network.
  public struct Failure: Error, CustomStringConvertible {
    /// The human-readable reason.
    public let description: String
  }

  private let router: Int32
  private let machine: Int32

  /// Whether this process may make namespaces, and has ip(8).
  public static let isAvailable: Bool =
    (try? run { network throws in try network.ip("link set lo up") }) != nil

  /// Runs `body` as a task on a loop, on a thread whose network is the machine's.
  public static func onLoop(
    _ body: @escaping (ThreadNetwork, EventLoop) async throws -> Void
  ) throws {
    let outcome = Outcome()
    let loop = try EventLoop()
    // Made here, so that what it expects is expected by the test that calls.
    loop.startTask {
      do { try await body(outcome.network!, loop) } catch { outcome.failure = error }
      loop.stop()
    }
    try run { network in
      outcome.network = network
      loop.run()
    }
    if let failure = outcome.failure { throw failure }
  }

  private final class Outcome: @unchecked Sendable {
    var network: ThreadNetwork?
    var failure: (any Error)?
  }

  /// Runs `body` on a thread whose network is the machine's. What it expects is expected by no test.
  public static func run(_ body: @escaping (ThreadNetwork) throws -> Void) throws {
    let job = Job(body)
    var thread = pthread_t()
    guard pthread_create(&thread, nil, networkThreadMain, Unmanaged.passRetained(job).toOpaque()) == 0 else {
      throw Failure(description: "no thread")
    }
    pthread_join(thread, nil)
    if let failure = job.failure { throw failure }
  }

  fileprivate init() throws {
    router = try ThreadNetwork.enterNew()
    machine = try ThreadNetwork.enterNew()
  }

  deinit {
    close(router)
    close(machine)
  }

  /// Runs ip(8) on the machine.
  public func ip(_ arguments: String) throws {
    try ThreadNetwork.spawn(["ip"] + arguments.split(separator: " ").map(String.init))
  }

  /// Runs ip(8) on the router.
  public func routerIP(_ arguments: String) throws {
    setns(router, CLONE_NEWNET)
    defer { setns(machine, CLONE_NEWNET) }
    try ip(arguments)
  }

  /// Puts a cable between an interface of the machine and one of the router, switches both on, and waits until the kernel
  /// has seen that there is a link.
  public func cable(_ name: String, routerName: String, routerAddress: String? = nil) throws {
    try ip("link add \(name) type veth peer name \(routerName)")
    try ip("link set \(routerName) netns /proc/\(getpid())/fd/\(router)")
    if let routerAddress { try routerIP("link set \(routerName) address \(routerAddress)") }
    try routerIP("link set \(routerName) up")
    try ip("link set \(name) up")
    guard comes(within: .seconds(20), { ThreadNetwork.isRunning(name) }) else {
      throw Failure(description: "\(name) has no carrier")
    }
  }

  /// Whether an interface of the calling thread's network is up and has a carrier.
  private static func isRunning(_ name: String) -> Bool {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return false }
    defer { freeifaddrs(first) }
    var next = first
    while let entry = next {
      next = entry.pointee.ifa_next
      guard String(cString: entry.pointee.ifa_name) == name else { continue }
      return entry.pointee.ifa_flags & UInt32(IFF_RUNNING) != 0
    }
    return false
  }

  private static func enterNew() throws -> Int32 {
    guard unshare(CLONE_NEWNET) == 0 else { throw Failure(description: "no namespace: errno \(errno)") }
    let descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(description: "no descriptor of a namespace: errno \(errno)") }
    return descriptor
  }

  private static func spawn(_ arguments: [String]) throws {
    let status = try TestSupport.run(arguments)
    guard status == 0 else { throw Failure(description: "\(arguments.joined(separator: " ")): status \(status)") }
  }

  fileprivate final class Job {
    let body: (ThreadNetwork) throws -> Void
    var failure: (any Error)?

    init(_ body: @escaping (ThreadNetwork) throws -> Void) { self.body = body }

    func run() {
      do { try body(ThreadNetwork()) } catch { failure = error }
    }
  }
}

private func networkThreadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Unmanaged<ThreadNetwork.Job>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}
