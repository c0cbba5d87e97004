// SetKernel.swift -- what is asked of the kernel about sets. Every function blocks; one thread uses it.

import Configuration
import DNSWire

/// The kernel's nf_tables, or a test's imitation.
///
/// The kernel counts the generations of its rule set: every change of it by a process, also of an element, begins another
/// one. What is read within one generation belongs together, and a commit can demand that it is still the same.
protocol SetKernel: AnyObject {
  /// The number of the present generation.
  func generation() throws(SetFailure) -> UInt32

  func describe(_ set: FirewallSetName) throws(SetFailure) -> SetDescription

  /// How long a set contains an address from now on; nil if it does not contain it.
  func life(
    of address: IPAddress, in set: FirewallSetName, _ description: SetDescription
  ) throws(SetFailure) -> ElementLife?

  /// Applies all changes, or none.
  func commit(_ changes: [SetChange], in generation: UInt32) throws(CommitFailure)
}

/// How long a set contains an address.
enum ElementLife: Equatable {
  case expires(after: Duration)
  case forever
  /// A wider interval contains it. The kernel refuses an interval that overlaps another one.
  case covered

  /// Whether an element for `lifetime` has nothing to add to it.
  func includes(_ lifetime: Duration) -> Bool {
    switch self {
    case .expires(let remaining): remaining >= lifetime
    case .forever, .covered: true
    }
  }
}

/// The elements of a batch that belong to one set.
struct SetChange {
  let set: FirewallSetName
  let description: SetDescription
  var elements: [SetElement]
}

/// An element to be added, or to be prolonged.
struct SetElement: Equatable {
  let address: IPAddress
  /// Nil in a set without timeouts.
  let timeout: Duration?
  /// Whether the set contains it: only then it is deleted before it is added with its new timeout.
  let isPresent: Bool
}

/// Why nothing of a batch was applied.
enum CommitFailure: Error, Equatable {
  /// The rule set is of another generation.
  case generationEnded
  /// One of the changes is impossible, and the others have not been tried.
  case refused(index: Int, SetFailure)
  /// The batch as a whole failed.
  case failed(SetFailure)
}
