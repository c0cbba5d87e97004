// TokenLabels.swift -- the tokens that clients have used, by numbers that fit beside a query.

import Synchronization

/// Numbers for accepted tokens, from 1 on. A token keeps its number for as long as the process runs. Any thread.
package final class TokenLabels: Sendable {
  private let known = Mutex(Known())

  private struct Known: Sendable {
    var entries: [TokenList.Entry] = []
    var numbers: [TokenList.Entry: UInt16] = [:]
  }

  package init() {}

  /// The number of a token; 0, which has no label, if there were too many.
  func number(of entry: TokenList.Entry) -> UInt16 {
    known.withLock { known in
      if let number = known.numbers[entry] { return number }
      guard known.entries.count < Int(UInt16.max) else { return 0 }
      known.entries.append(entry)
      known.numbers[entry] = UInt16(known.entries.count)
      return UInt16(known.entries.count)
    }
  }

  /// The token of a number; nil for 0.
  func entry(_ number: UInt16) -> TokenList.Entry? {
    number == 0 ? nil : known.withLock { known in known.entries[Int(number) - 1] }
  }

  /// The label of a number; nil for 0.
  package subscript(number: UInt16) -> String? { entry(number)?.label }
}
