// WorkInFlight.swift -- what was given to the thread and is not reported yet, with the completions that wait for it.

import Configuration
import EventLoop

/// Numbers pieces of work. All additions wait for the same time, so that the completions end in the order of the numbers.
struct WorkInFlight {
  private enum Piece {
    case addition(Addition)
    /// With the completions that wait for it.
    case look([() -> Void])
  }

  private struct Addition {
    /// The number of addresses for each set.
    let sizes: [FirewallSetName: Int]
    let deadline: BootInstant
    /// Nil after it was called.
    var completion: (() -> Void)?
  }

  private(set) var additions = 0
  private var pieces: [Int: Piece] = [:]
  private var next = 0
  /// No completion of a smaller number waits.
  private var oldest = 0
  private var lookNumber: Int?

  /// Numbers an addition.
  mutating func begin(
    _ sizes: [FirewallSetName: Int], deadline: BootInstant, completion: @escaping () -> Void
  ) -> Int {
    additions += 1
    return add(.addition(Addition(sizes: sizes, deadline: deadline, completion: completion)))
  }

  var isLooking: Bool { lookNumber != nil }

  /// Numbers a look. Only while there is none.
  mutating func beginLook(_ completions: [() -> Void]) -> Int {
    let number = add(.look(completions))
    lookNumber = number
    return number
  }

  private mutating func add(_ piece: Piece) -> Int {
    defer { next += 1 }
    pieces[next] = piece
    return next
  }

  /// Removes a piece that has ended; nil if it was abandoned.
  mutating func end(_ number: Int) -> (isAddition: Bool, completions: [() -> Void])? {
    switch pieces.removeValue(forKey: number) {
    case nil: return nil
    case .look(let completions):
      lookNumber = nil
      return (false, completions)
    case .addition(let addition):
      additions -= 1
      return (true, addition.completion.map { [$0] } ?? [])
    }
  }

  /// When the completion that has waited longest has waited long enough; nil if none waits.
  var firstDeadline: BootInstant? {
    mutating get {
      while oldest < next {
        if case .addition(let addition) = pieces[oldest], addition.completion != nil { return addition.deadline }
        oldest += 1
      }
      return nil
    }
  }

  /// Takes the next completion whose deadline has come; its addition stays in flight.
  mutating func takeLate(now: BootInstant) -> (sizes: [FirewallSetName: Int], completion: () -> Void)? {
    guard let deadline = firstDeadline, deadline <= now, case .addition(var addition) = pieces[oldest],
      let completion = addition.completion
    else { return nil }
    addition.completion = nil
    pieces[oldest] = .addition(addition)
    return (addition.sizes, completion)
  }

  /// Forgets all pieces; returns the completions that wait, in their order.
  mutating func abandon() -> [() -> Void] {
    let completions = pieces.sorted { $0.key < $1.key }.flatMap { piece -> [() -> Void] in
      switch piece.value {
      case .addition(let addition): addition.completion.map { [$0] } ?? []
      case .look(let completions): completions
      }
    }
    pieces = [:]
    additions = 0
    lookNumber = nil
    oldest = next
    return completions
  }
}
