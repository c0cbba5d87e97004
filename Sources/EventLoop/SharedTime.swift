// SharedTime.swift -- bounds the time in each turn for input from peers, however many connections have some.
//
// What one connection reads is bounded for each turn, but hundreds of connections may have something to read in the
// same turn. They queue instead. The loop runs actions from the front of the queue for a few milliseconds a turn, with
// clients and timers in between. A connection with more to read goes to the end of the queue.

/// A queue of actions, and how long they run in one turn. Loop thread only.
struct SharedTime {
  /// The time in one turn, after which no further action begins.
  static let inTurn = Duration.milliseconds(2)

  private var actions: [() -> Void] = []
  /// How many of `actions` have run.
  private var begun = 0

  var isEmpty: Bool { begun == actions.count }

  mutating func append(_ action: @escaping () -> Void) { actions.append(action) }

  /// Removes and returns the first action.
  ///
  /// - Complexity: O(1), amortized.
  mutating func next() -> (() -> Void)? {
    guard begun < actions.count else { return nil }
    let action = actions[begun]
    actions[begun] = {}
    begun += 1
    if begun == actions.count {
      actions.removeAll(keepingCapacity: begun <= 1024)
      begun = 0
    } else if begun >= 64, begun > actions.count / 2 {
      actions.removeFirst(begun)
      begun = 0
    }
    return action
  }
}

/// A place in the loop's queue for the time that is shared. Taken back when it is released. Loop thread only.
public final class OwnedPlace {
  /// What the queue knows of the place: a place that was taken back gets another one.
  private final class Entry { var isTaken = false }
  private var entry = Entry()

  /// Whether its action has yet to run.
  public var isTaken: Bool { entry.isTaken }

  public init() {}

  deinit { entry.isTaken = false }

  /// Runs `action` when all that was queued before has run, with the object that has this place as a property of its own. No
  /// effect if the place is taken.
  public func take<Owner: AnyObject>(on loop: any Loop, for owner: Owner, _ action: @escaping (Owner) -> Void) {
    loop.assertCurrent()
    guard !isTaken else { return }
    entry.isTaken = true
    // The owner's end is the place's.
    loop.queue { [entry, unowned owner] in
      guard entry.isTaken else { return }
      entry.isTaken = false
      action(owner)
    }
  }

  /// Takes the place back.
  public func cancel() {
    guard isTaken else { return }
    entry.isTaken = false
    entry = Entry()
  }
}

extension Loop {
  /// Suspends the calling task, which must run on this loop, until all that was queued before has run.
  public func waitInQueue() async { await withCheckedContinuation { continuation in queue { continuation.resume() } } }

  /// Does work in portions, between which everything else that waits in the loop's queue has its turn. The calling task must
  /// run on this loop.
  ///
  /// - Parameter portion: does a part of the work, in about half a millisecond, and returns whether it was the last one.
  nonisolated(nonsending) public func inPortions(_ portion: () -> Bool) async {
    while !portion() { await waitInQueue() }
  }
}
