// TableReading.swift -- understands a table where nobody waits: a large one takes longer than a turn of the loop may.

import EventLoop
import HTTPDNS
import Persistence

/// Reading tables, and letting go of them.
enum TableReading {
  /// The table, or why there is none.
  typealias Outcome = Result<AddressTable, AddressTableFault>

  /// Octets that are understood within a turn, in about a millisecond.
  static let mostHere = 64 * 1024
  /// Names whose memory is given back within a turn.
  private static let mostNamesHere = 5_000

  /// What `read` gives, on a thread of its own where there are many octets. A simulated loop has no other thread.
  static func outcome(
    of octets: Int, on loop: any Loop, _ read: @escaping @Sendable () throws(AddressTableFault) -> AddressTable
  ) async -> Outcome {
    let work: @Sendable () -> Outcome = {
      do throws(AddressTableFault) { return .success(try read()) } catch { return .failure(error) }
    }
    guard octets > mostHere, let loop = loop as? EventLoop else { return work() }
    return await withUnsafeContinuation { continuation in
      Errand.start("table") {
        let outcome = work()
        loop.execute { continuation.resume(returning: outcome) }
      }
    }
  }

  /// Lets go of a table that nobody asks any more.
  static func free(_ table: consuming AddressTable?) {
    guard let old = table, old.count > mostNamesHere else { return }
    Errand.start("old table") { withExtendedLifetime(old) {} }
  }
}
