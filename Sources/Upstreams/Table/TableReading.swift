// TableReading.swift -- parses large tables off the loop's thread, since they take longer than a turn may.

import EventLoop
import HTTPDNS
import Persistence

/// Parsing and freeing of tables.
enum TableReading {
  /// The table, or the reason why it cannot be parsed.
  typealias ReadingResult = Result<AddressTable, AddressTableFault>

  /// The size in octets up to which a table is parsed on the loop, which takes about a millisecond.
  static let mostHere = 64 * 1024
  /// The number of names up to which a table is freed on the loop.
  private static let mostNamesHere = 5_000

  /// Runs `read` on the loop or, for a large table, on a thread of its own. A simulated loop has no other thread.
  static func outcome(
    of octets: Int, on loop: any Loop, _ read: @escaping @Sendable () throws(AddressTableFault) -> AddressTable
  ) async -> ReadingResult {
    let work: @Sendable () -> ReadingResult = {
      do throws(AddressTableFault) { return .success(try read()) } catch { return .failure(error) }
    }
    guard octets > mostHere, let loop = loop as? EventLoop else { return work() }
    return await withUnsafeContinuation { continuation in
      BlockingTask.start("table") {
        let outcome = work()
        loop.execute { continuation.resume(returning: outcome) }
      }
    }
  }

  /// Frees a table that is no longer used; a large one on a thread of its own.
  static func free(_ table: consuming AddressTable?) {
    guard let old = table, old.count > mostNamesHere else { return }
    BlockingTask.start("old table") { withExtendedLifetime(old) {} }
  }
}
