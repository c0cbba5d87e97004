// TopView.swift -- the settings that keys of `httpdnsd top` change: order of the names, filter, help.

/// The order and filter of the names, changed by keys.
public struct TopView: Sendable, Equatable {
  /// The sort key of the names.
  public enum Order: String, CaseIterable, Sendable {
    /// By the sum of hits and questions.
    case busy
    case hits, asked, failed
    case roundTrip = "round trip"
    case name

    /// The key that selects this order.
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

  /// The effect of a key.
  public enum Reaction: Sendable, Equatable {
    /// End the program.
    case quit
    /// Take the next sample at once.
    case next
    /// Draw the screen again.
    case draw
    /// The key has no effect.
    case none
  }

  /// The order of the names; by default, busiest first.
  public var order = Order.busy
  /// Only names that contain this text, in lower case, are shown; empty for all names.
  public var filter = ""
  /// Whether keys are typed into the filter.
  public var isTyping = false
  /// Whether the help is shown instead of the figures.
  public var showsHelp = false

  /// The longest filter, in characters.
  private static let longestFilter = 64

  /// Creates a view of the busiest names without a filter.
  public init() {}

  /// Handles a key.
  ///
  /// - Parameter key: the octet that the key sends.
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
    if isTyping { return "names with: \(filter)_   Enter applies it, Esc clears it" }
    let shown = filter.isEmpty ? "" : ", names with \"\(filter)\" (Esc: all)"
    return "sorted by \(order.rawValue)\(shown); ? help, q quit"
  }

  static let help: [String] = {
    let orders = Order.allCases.map { "  \($0.key)        sort names by \($0.rawValue)" }
    let others = [
      "Keys", "  q        quit", "  space    update at once",
      "  /        show only names that contain a text", "  Esc      show all names", "  ?        show or hide help",
    ]
    return others + orders
  }()
}
