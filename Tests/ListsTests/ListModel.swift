// ListModel.swift -- lists as dictionaries of strings, and random ones of every form.

import PublicSuffixes
import TestSupport

@testable import Lists

/// What lists say, by the definition: for each use the deepest line decides, and at one depth "out" before "in".
struct ListModel {
  /// What the lists say about a name, a bit for each list.
  private struct Entry {
    var subtree: UInt64 = 0
    var alone: UInt64 = 0
    var exception: UInt64 = 0
    let isPublicSuffix: Bool
  }

  private var entries: [String: Entry] = [:]
  private let uses: [ListUse]

  init(_ uses: [ListUse]) { self.uses = uses }

  mutating func add(_ form: ListForm, _ name: String, list: Int) {
    let isPublicSuffix = { name.withCString { PublicSuffixes.contains(text: $0) } }
    var entry = entries[name] ?? Entry(isPublicSuffix: isPublicSuffix())
    switch form {
    case .subtree: entry.subtree |= 1 << UInt64(list)
    case .alone: entry.alone |= 1 << UInt64(list)
    case .exception: entry.exception |= 1 << UInt64(list)
    }
    entries[name] = entry
  }

  /// The names of a list that one of its uses takes in or out.
  func names(of list: Int) -> Int {
    let mask = uses.filter { $0.list == list }
    let takesSuffixes = mask.contains { !$0.blocks }
    return entries.values.count { entry in
      let selected =
        entry.isPublicSuffix && !takesSuffixes ? entry.exception : entry.subtree | entry.alone | entry.exception
      return !mask.isEmpty && selected & 1 << UInt64(list) != 0
    }
  }

  /// The uses that select a name, a bit each.
  func uses(_ name: String) -> UInt64 {
    var found: [(entry: Entry, isWhole: Bool)] = []
    var suffix = name[...]
    while true {
      if let entry = entries[String(suffix)] { found.append((entry, suffix.count == name.count)) }
      guard let dot = suffix.utf8.firstIndex(of: UInt8(ascii: ".")) else { break }
      suffix = suffix[suffix.utf8.index(after: dot)...]
    }
    guard !found.isEmpty else { return 0 }
    var selected: UInt64 = 0
    for (index, use) in uses.enumerated() where ListModel.selects(found, use) { selected |= 1 << UInt64(index) }
    return selected
  }

  private static func selects(_ found: [(entry: Entry, isWhole: Bool)], _ use: ListUse) -> Bool {
    let list: UInt64 = 1 << UInt64(use.list)
    for (entry, isWhole) in found {
      if entry.exception & list != 0 { return false }
      if use.blocks && entry.isPublicSuffix { continue }
      if (entry.subtree | (isWhole ? entry.alone : 0)) & list != 0 { return true }
    }
    return false
  }
}

/// Random lists, as texts and as a model.
struct RandomLists {
  private(set) var texts: [String]
  private(set) var model: ListModel
  let uses: [ListUse]
  /// Names of the lists, and of what is below and beside them.
  private(set) var names: [String] = []
  private var random: SeededGenerator

  /// - Parameter lines: of all lists together.
  init(lines: Int, seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let count = Int.random(in: 1...40, using: &random)
    uses = (0..<Int.random(in: 1...ListTable.maximumUses, using: &random)).map { _ in
      ListUse(list: Int.random(in: 0..<count, using: &random), blocks: Bool.random(using: &random))
    }
    texts = [String](repeating: "a-name-that-no-other-list.has\n", count: count)
    model = ListModel(uses)
    self.random = random
    for list in 0..<count { model.add(.subtree, "a-name-that-no-other-list.has", list: list) }
    for _ in 0..<lines { addLine(among: lines) }
  }

  /// Whether a rule that blocks uses a list.
  func isBlocking(_ list: Int) -> Bool { uses.contains { $0.list == list && $0.blocks } }

  /// A name that may stand in the lists, or below or above one.
  mutating func query() -> String {
    let name = names.randomElement(using: &random)!
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return "www." + name
    case 1: return "a.b." + name
    case 2: return "x" + name
    case 3: return name.split(separator: ".", maxSplits: 1).last.map(String.init)!
    default: return name
    }
  }

  private mutating func addLine(among count: Int) {
    let name = name(among: count)
    let list = Int.random(in: texts.indices, using: &random)
    let (form, line): (ListForm, String) =
      switch Int.random(in: 0..<12, using: &random) {
      case 0: (.subtree, "||\(name)^")
      case 1: (.subtree, "server=/\(name)/192.0.2.1")
      case 2: (.subtree, "  - DOMAIN-SUFFIX,\(name),DIRECT")
      case 3: (.subtree, "*.\(name) # \(count)")
      case 4: (.subtree, "- '+.\(name.uppercased())'\r")
      case 5: (.alone, "full:\(name)")
      case 6: (.alone, "0.0.0.0\t\(name)")
      case 7: (.alone, "DOMAIN,\(name)")
      case 8: (.exception, "@@||\(name)^|")
      case 9: (.exception, "@@||\(name)^$important")
      default: (.subtree, name)
      }
    texts[list] += line + "\n"
    model.add(form, name, list: list)
    names.append(name)
  }

  /// Often one that another line has, or one below or above it.
  private mutating func name(among count: Int) -> String {
    let label = "n\(Int.random(in: 0..<count, using: &random))"
    if let known = names.randomElement(using: &random) {
      switch Int.random(in: 0..<8, using: &random) {
      case 0: return known
      case 1 where known.utf8.count < 100: return "\(label).\(known)"
      default: break
      }
    }
    let suffix = ["com", "cn", "co.uk", "github.io", "example", "a.b.example", "ck"].randomElement(using: &random)!
    return random.oneIn(50) ? suffix : "\(label).\(suffix)"
  }
}
