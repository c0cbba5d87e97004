// SharedTime.swift -- bounds the time in each turn for input from peers, however many connections have some.
//
// What one connection reads is bounded for each turn, but hundreds of connections may have something to read in the
// same turn. They queue instead. The loop runs actions from the front of the queue for a few milliseconds a turn, with
// clients and timers in between. A connection with more to read goes to the end of the queue.

/// A queue of actions, and how long they run in one turn. Loop thread only.
struct SharedTime {
  /// What waits in the queue.
  enum Item {
    case action(() -> Void)
    case place(PlaceEntry)
    /// It has run.
    case nothing

    func run() {
      switch self {
      case .action(let action): action()
      case .place(let entry): entry.run()
      case .nothing: break
      }
    }
  }

  /// The time in one turn, after which no further action begins.
  static let inTurn = Duration.milliseconds(2)

  private var items: [Item] = []
  /// How many of `items` have run.
  private var begun = 0

  var isEmpty: Bool { begun == items.count }

  mutating func append(_ item: Item) { items.append(item) }

  /// Removes and returns the first item.
  ///
  /// - Complexity: O(1), amortized.
  mutating func next() -> Item? {
    guard begun < items.count else { return nil }
    let item = items[begun]
    items[begun] = .nothing
    begun += 1
    if begun == items.count {
      items.removeAll(keepingCapacity: begun <= 1024)
      begun = 0
    } else if begun >= 64, begun > items.count / 2 {
      items.removeFirst(begun)
      begun = 0
    }
    return item
  }
}

/// An object that takes places in a loop's queue.
package protocol QueueMember: AnyObject {
  /// All that was queued before has run.
  func placeHasCome()
}

/// What a queue knows of a place: a place that was taken back gets another one. Loop thread only.
public final class PlaceEntry {
  fileprivate var isTaken = false
  /// Takes the place back before it ends.
  fileprivate unowned(unsafe) var owner: (any QueueMember)?

  func run() {
    guard isTaken, let owner else { return }
    isTaken = false
    owner.placeHasCome()
  }
}

/// A place in the loop's queue for the time that is shared. Taken back when it is released. Loop thread only.
///
/// To take one allocates nothing: each event of a connection does so.
public final class OwnedPlace {
  private var entry = PlaceEntry()

  /// Whether its owner has yet to run.
  public var isTaken: Bool { entry.isTaken }

  public init() {}

  deinit { entry.isTaken = false }

  /// Calls `owner`, the object that has this place as a property of its own, when all that was queued before has run. No
  /// effect if the place is taken.
  package func take(on loop: any Loop, for owner: any QueueMember) {
    loop.assertCurrent()
    guard !isTaken else { return }
    entry.isTaken = true
    // The owner's end is the place's.
    entry.owner = owner
    loop.queue(entry)
  }

  /// Takes the place back.
  public func cancel() {
    guard isTaken else { return }
    entry.isTaken = false
    entry = PlaceEntry()
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
