// ForwarderSets.swift -- the firewall sets of rules: made when a rule has the first one, filled again when the kernel has
// lost them.
//
// Resolver's loop only.

import Configuration
import EventLoop
import FirewallSets
import Logging
import Resolver

/// The writer of the sets of a configuration; nothing at all without sets.
final class SetKeeper {
  private let resolver: Resolver
  private let loop: EventLoop
  private let logger: Logger
  private var writer: SetWriter?
  private var filler: SetFiller?

  init(_ resolver: Resolver, on loop: EventLoop, _ logger: Logger) {
    (self.resolver, self.loop, self.logger) = (resolver, loop, logger)
  }

  /// All sets, in the order of the configuration.
  var statuses: [SetStatus] { writer?.statuses ?? [] }

  /// Uses the sets of these routes from now on.
  func use(_ routes: [Route]) {
    let names = routes.flatMap { $0.sets?.names ?? [] }
    guard writer != nil || !names.isEmpty else { return }
    let writer = writer ?? makeWriter()
    writer.apply(names)
  }

  /// Adds the addresses of all cached answers again.
  func refill() { writer?.refillAll() }

  func close() { writer?.close() }

  private func makeWriter() -> SetWriter {
    let writer = SetWriter(
      on: loop, refill: { [weak self] in self?.refill($0) },
      note: { [logger] in logger.log(level: $0.isProblem ? .error : .info, "\($0)") })
    nonisolated(unsafe) let filler = SetFiller(writer)
    resolver.assumeIsolated { $0.sets = filler }
    self.filler = filler
    self.writer = writer
    return writer
  }

  private func refill(_ set: FirewallSetName) {
    guard let filler else { return }
    nonisolated(unsafe) let used = filler
    loop.startTask { [resolver] in await resolver.console { await $0.refill(set, by: used) } }
  }
}
