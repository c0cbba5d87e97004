// PairedNames.swift -- fetches both address families of a name in one transfer once clients ask for both.

import DNSWire
import EventLoop
import HTTPDNS

/// Names that clients ask for in both address families. Only for these, a transfer asks for both.
struct PairedNames {
  private var seen: [DomainName: UInt8] = [:]
  private static let most = 10_000

  /// Records a question; returns whether both families of its name had been asked for before.
  mutating func note(_ question: HTTPDNSQuestion) -> Bool {
    let bit: UInt8 = question.type == .a ? 1 : 2
    let before = seen[question.name] ?? 0
    if before | bit != before {
      if before == 0, seen.count >= PairedNames.most { seen = [:] }
      seen[question.name] = before | bit
    }
    return before == 3
  }
}

/// One transfer for both address families of a name. Each caller waits for it until its own deadline.
/// Resolver's loop only; `@unchecked Sendable` because tasks on that loop capture it.
final class PairInFlight: @unchecked Sendable {
  private let loop: any Loop
  private let waiters: Waiters
  private var result: Result<ProviderReplies, UpstreamFailure>?
  private var wanted: [@Sendable () -> Bool] = []

  init(on loop: any Loop) {
    self.loop = loop
    waiters = Waiters(on: loop)
  }

  /// Ends the transfer and resumes all callers.
  func end(_ result: Result<ProviderReplies, UpstreamFailure>) {
    loop.assertCurrent()
    self.result = result
    waiters.resumeAll()
  }

  /// Whether any caller still wants another server to be tried.
  var isWanted: Bool { wanted.isEmpty || wanted.contains { $0() } }

  /// Returns the result of the transfer, or a failure at `deadline`.
  ///
  /// - Parameter isWanted: whether this caller wants another server to be tried after a failure.
  func result(
    by deadline: BootInstant, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    loop.assertCurrent()
    wanted.append(isWanted)
    if result == nil { await waiters.wait(atMost: deadline - loop.now) }
    return result ?? .failure(.noTimeLeft)
  }
}
