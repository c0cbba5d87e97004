// RefreshGathering.swift -- lets questions that fall due within a short while travel in one transfer.
//
// Pure: driven by a clock that is passed in, in nanoseconds. One for each source.

/// Address families that a name is asked for.
public struct RefreshFamilies: OptionSet, Hashable, Sendable {
  /// The families as bits.
  public let rawValue: UInt8

  /// Those families.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A records.
  public static let ipv4 = RefreshFamilies(rawValue: 1)
  /// AAAA records.
  public static let ipv6 = RefreshFamilies(rawValue: 2)
}

/// Questions that travel together.
public struct RefreshGroup<Name: Hashable & Sendable>: Hashable, Sendable {
  /// A name with everything that is asked about it.
  public struct Member: Hashable, Sendable {
    /// The name.
    public let name: Name
    /// At least one.
    public var families: RefreshFamilies

    /// A name with what is asked about it.
    @inlinable
    public init(name: Name, families: RefreshFamilies) {
      self.name = name
      self.families = families
    }
  }

  /// The names in the order in which they came, none twice.
  public var members: [Member]
  /// The earliest deadline of its questions.
  public var deadline: Int64

  /// Such a group.
  @inlinable
  public init(members: [Member] = [], deadline: Int64 = .max) {
    self.members = members
    self.deadline = deadline
  }
}

/// Gathers questions of one source until a transfer is full, or until one of them cannot wait any longer.
///
/// Its owner adds whatever is due, then takes the groups that are closed: a full group is held until it is taken, so that
/// the second family of a name that is due at the same time still joins the first.
///
/// `Name` is whatever the source keeps apart: the owner name, and where it matters the route or the client's subnet. It is
/// hashed three times for a question, so its hash should be one that is at hand.
public struct RefreshGathering<Name: Hashable & Sendable>: Sendable {
  /// Names that a transfer may carry.
  public let mostNames: Int
  /// All but the last are full.
  @usableFromInline var groups: [RefreshGroup<Name>] = []
  /// Where a name is: the number of its group, counted from the first that ever was, and its place there.
  @usableFromInline var places: [Name: (group: Int, member: Int)] = [:]
  @usableFromInline var taken = 0

  /// A gathering without questions.
  ///
  /// - Parameter mostNames: names that a transfer may carry, whatever their families; 1 where only the families of a name
  ///   can travel together.
  @inlinable
  public init(mostNames: Int) {
    precondition(mostNames > 0)
    self.mostNames = mostNames
  }

  /// Names that wait.
  @inlinable
  public var count: Int { places.count }

  /// When a group has to be taken, if nothing is added until then: nil where nothing waits, `Int64.min` where a full
  /// group does.
  @inlinable
  public var nextClosing: Int64? {
    guard let first = groups.first else { return nil }
    return isFull(first) ? .min : first.deadline
  }

  /// Adds a question, or both of a name. What waits already is not added again; the earlier deadline counts.
  ///
  /// - Parameters:
  ///   - families: one at least.
  ///   - deadline: how long the question may wait for others.
  @inlinable
  public mutating func add(_ name: Name, _ families: RefreshFamilies, deadline: Int64) {
    precondition(!families.isEmpty)
    if let place = places[name] {
      let group = place.group - taken
      groups[group].members[place.member].families.formUnion(families)
      groups[group].deadline = min(groups[group].deadline, deadline)
      return
    }
    if groups.last.map(isFull) ?? true { groups.append(RefreshGroup()) }
    let last = groups.count - 1
    places[name] = (group: taken + last, member: groups[last].members.count)
    groups[last].members.append(RefreshGroup.Member(name: name, families: families))
    groups[last].deadline = min(groups[last].deadline, deadline)
  }

  /// Takes the groups that are full, and the last one if its deadline has come. `Int64.max` takes everything.
  ///
  /// - Complexity: O(*k*) for *k* names in these groups.
  @inlinable
  public mutating func takeClosed(now: Int64) -> [RefreshGroup<Name>] {
    guard let last = groups.last else { return [] }
    let stays = !isFull(last) && last.deadline > now
    let closed = stays ? Array(groups.dropLast()) : groups
    guard !closed.isEmpty else { return [] }
    groups = stays ? [last] : []
    taken += closed.count
    for group in closed {
      for member in group.members { places[member.name] = nil }
    }
    // A dictionary never shrinks by itself.
    if places.isEmpty, places.capacity > 4 * mostNames { places = [:] }
    return closed
  }

  @inlinable
  func isFull(_ group: RefreshGroup<Name>) -> Bool { group.members.count >= mostNames }
}
