// TableReading.swift -- reads large tables off the loop's thread, since they take longer than a turn may.

import EventLoop
import HTTPDNS
import Persistence

enum TableReading {
  /// The size in octets up to which a table is parsed on the loop, which takes about a millisecond.
  static let mostHere = 64 * 1024

  /// Runs `read` on the loop or, for a large table, on a thread of its own.
  static func outcome<Fault: Error>(
    of octets: Int, on loop: any Loop, _ read: @escaping @Sendable () throws(Fault) -> AddressTable
  ) async -> Result<AddressTable, Fault> {
    let work: @Sendable () -> Result<AddressTable, Fault> = {
      do throws(Fault) { return .success(try read()) } catch { return .failure(error) }
    }
    return octets > mostHere ? await BlockingTask.value("table", on: loop, work) : work()
  }
}
