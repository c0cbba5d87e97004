// LeftOut.swift -- the lines of a list that select nothing, counted by reason.

/// The reason why a line of a list is left out.
public enum LeftOutReason: UInt8, CaseIterable, Sendable {
  case keyword, regularExpression, wildcard, modifier, cosmetic, otherAddress, network, include, address, publicSuffix
  case noName, tooLong

  /// A phrase that follows a count of lines: `12 lines left out: keyword`.
  public var text: String {
    switch self {
    case .keyword: "keyword"
    case .regularExpression: "regular expression"
    case .wildcard: "\"*\" inside a name"
    case .modifier: "modifier"
    case .cosmetic: "cosmetic rule"
    case .otherAddress: "hosts line with another address"
    case .network: "network of addresses"
    case .include: "include"
    case .address: "address"
    case .publicSuffix: "public suffix in a rule that blocks"
    case .noName: "no name"
    case .tooLong: "longer than \(ListReader.longestLine) octets"
    }
  }
}

/// How many lines of a list are left out, and the first of each reason.
public struct LeftOut: Equatable, Sendable {
  /// A line of a list.
  public struct Line: Equatable, Sendable {
    /// From 1.
    public let number: Int
    /// At most 80 characters; others than printable ASCII are shown as `\xNN`.
    public let text: String

    init(number: Int, text: String) { (self.number, self.text) = (number, text) }

    /// A line of a text, without its end.
    public init(number: Int, _ octets: [UInt8]) {
      self.number = number
      text = octets.withUnsafeBufferPointer { octets in
        octets.baseAddress.map { LineText(start: $0, end: $0 + octets.count).trimmed.shown } ?? ""
      }
    }
  }

  private var counts = [Int](repeating: 0, count: LeftOutReason.allCases.count)
  private var lines = [Line?](repeating: nil, count: LeftOutReason.allCases.count)

  public init() {}

  public var total: Int { counts.reduce(0, +) }

  public subscript(reason: LeftOutReason) -> Int { counts[Int(reason.rawValue)] }

  /// The reasons for which lines are left out.
  public var reasons: [LeftOutReason] { LeftOutReason.allCases.filter { self[$0] > 0 } }

  public func first(_ reason: LeftOutReason) -> Line? { lines[Int(reason.rawValue)] }

  mutating func count(_ reason: LeftOutReason, line number: Int, _ text: LineText) {
    let index = Int(reason.rawValue)
    counts[index] += 1
    if lines[index] == nil { lines[index] = Line(number: number, text: text.shown) }
  }
}
