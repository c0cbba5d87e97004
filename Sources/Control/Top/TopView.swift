// TopView.swift -- what the keys of `httpdnsd top` change: the order of the names, a filter, the help.

/// How the names are shown.
public struct TopView: Sendable, Equatable {
  /// By what the names are sorted.
  public enum Order: String, CaseIterable, Sendable {
    /// Hits and questions together.
    case busy
    case hits, asked, failed
    case roundTrip = "round trip"
    case name

    /// The key that chooses it.
    var key: Character {
      switch self {
      case .busy: "b"
      case .hits: "h"
      case .asked: "a"
      case .failed: "f"
      case .roundTrip: "r"
      case .name: "n"
      }
    }
  }

  /// What follows from a key.
  public enum Reaction: Sendable, Equatable {
    /// The program ends.
    case quit
    /// The next figures are wanted at once.
    case next
    /// The screen changes.
    case draw
    /// The key means nothing.
    case none
  }

  /// The order of the names.
  public var order = Order.busy
  /// Only names that contain this are shown, in lower case.
  public var filter = ""
  /// Whether keys go into the filter.
  public var isTyping = false
  /// Whether the keys are explained.
  public var showsHelp = false

  /// Characters of a filter.
  private static let longestFilter = 64

  /// The busiest names, without a filter.
  public init() {}

  /// Takes a key.
  ///
  /// - Parameter key: the octet that it sends.
  public mutating func press(_ key: UInt8) -> Reaction { isTyping ? type(key) : command(key) }

  private mutating func command(_ key: UInt8) -> Reaction {
    let character = Character(Unicode.Scalar(key))
    switch character {
    case "q", "Q": return .quit
    case " ": return .next
    case "?": showsHelp.toggle()
    case "/": (isTyping, filter) = (true, "")
    case "\u{1B}" where !filter.isEmpty || showsHelp: (filter, showsHelp) = ("", false)
    default:
      guard let order = Order.allCases.first(where: { $0.key == character }), order != self.order else { return .none }
      self.order = order
    }
    return .draw
  }

  private mutating func type(_ key: UInt8) -> Reaction {
    switch key {
    case 0x0A, 0x0D: isTyping = false
    case 0x1B: (isTyping, filter) = (false, "")
    case 0x08, 0x7F: filter = String(filter.dropLast())
    case 0x21...0x7E where filter.count < TopView.longestFilter:
      filter.append(Character(Unicode.Scalar(key)).lowercased())
    default: return .none
    }
    return .draw
  }

  /// The last line of the screen.
  var line: String {
    if isTyping { return "names with: \(filter)_   Enter keeps it, Esc drops it" }
    let shown = filter.isEmpty ? "" : ", names with \"\(filter)\" (Esc: all)"
    return "sorted by \(order.rawValue)\(shown); ? help, q quit"
  }

  /// What the keys do.
  static let help: [String] = {
    let orders = Order.allCases.map { "  \($0.key)        sort names by \($0.rawValue)" }
    let others = [
      "Keys", "  q        quit", "  space    the next figures at once",
      "  /        show only names with a text in them", "  Esc      show all names", "  ?        this help, and back",
    ]
    return others + orders
  }()
}
