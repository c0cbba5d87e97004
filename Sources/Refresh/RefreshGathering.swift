// RefreshGathering.swift -- batches questions that fall due within a short time into one transfer.
//
// Pure: the caller passes in the clock, in nanoseconds. Each source has its own gathering.

/// The address families that a question asks for.
public struct RefreshFamilies: OptionSet, Hashable, Sendable {
  /// One bit per family: 1 for IPv4, 2 for IPv6.
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A records.
  public static let ipv4 = RefreshFamilies(rawValue: 1)
  /// AAAA records.
  public static let ipv6 = RefreshFamilies(rawValue: 2)
}

/// The questions of one transfer.
public struct RefreshGroup<Name: Hashable & Sendable>: Hashable, Sendable {
  /// A name and the families that the transfer asks for.
  public struct Member: Hashable, Sendable {
    /// The name, as the source distinguishes names.
    public let name: Name
    /// The families to ask for; never empty.
    public var families: RefreshFamilies

    /// `families` must not be empty.
    @inlinable
    public init(name: Name, families: RefreshFamilies) {
      self.name = name
      self.families = families
    }
  }

  /// The names in order of arrival, without duplicates.
  public var members: [Member]
  /// The earliest deadline among the questions, in nanoseconds.
  public var deadline: Int64

  @inlinable
  public init(members: [Member] = [], deadline: Int64 = .max) {
    self.members = members
    self.deadline = deadline
  }
}

/// Gathers questions of one source until a transfer is full, or until one of them cannot wait any longer.
///
/// The owner adds all questions that are due, then takes the closed groups. A full group stays until it is taken, so
/// that the second family of a name that is due at the same time still joins the first.
///
/// `Name` holds everything that the source distinguishes: the owner name and, where it matters, the route or the
/// client's subnet. It is hashed three times per question, so its hash should be cheap.
public struct RefreshGathering<Name: Hashable & Sendable>: Sendable {
  /// The most names that a transfer may carry.
  public let mostNames: Int
  /// The groups in order of arrival; all but the last are full.
  @usableFromInline var groups: [RefreshGroup<Name>] = []
  /// Where a name is: the number of its group, counted from the first group ever, and its index in that group.
  @usableFromInline var places: [Name: (group: Int, member: Int)] = [:]
  @usableFromInline var taken = 0

  /// - Parameter mostNames: the most names that a transfer may carry, each with all its families; 1 if a transfer can
  ///   only combine the families of one name.
  @inlinable
  public init(mostNames: Int) {
    precondition(mostNames > 0)
    self.mostNames = mostNames
  }

  /// The number of names that wait.
  @inlinable
  public var count: Int { places.count }

  /// When the owner has to take a group if nothing is added until then: nil if nothing waits, `Int64.min` if a full
  /// group waits.
  @inlinable
  public var nextClosing: Int64? {
    guard let first = groups.first else { return nil }
    return isFull(first) ? .min : first.deadline
  }

  /// Adds the questions of a name. A name that already waits is not added again; the earlier deadline counts.
  ///
  /// - Parameters:
  ///   - families: must not be empty.
  ///   - deadline: the time until which the questions may wait for others.
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

  /// Takes the full groups, and the last one if its deadline has passed. `Int64.max` takes all groups.
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
    // Removals never shrink a dictionary.
    if places.isEmpty, places.capacity > 4 * mostNames { places = [:] }
    return closed
  }

  @inlinable
  func isFull(_ group: RefreshGroup<Name>) -> Bool { group.members.count >= mostNames }
}
