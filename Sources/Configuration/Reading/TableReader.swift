// TableReader.swift -- reads the keys of one table into properties and reports the unknown ones.

import Files

/// Reads one TOML table. A key becomes known when it is asked for; `refuseUnknownKeys` reports all others.
final class TableReader {
  /// The position of the table.
  let place: ValuePath
  let report: MistakeReport
  private let table: [String: Value]
  /// The keys that were asked for, in that order.
  private(set) var known: [String] = []
  private var ignored: Set<String> = []
  private var unsound: Set<String> = []
  /// The keys whose secret is written in the configuration file itself.
  var inlineSecrets: [String] = []

  init(_ table: [String: Value], at place: ValuePath, _ report: MistakeReport) {
    self.table = table
    self.place = place
    self.report = report
  }

  /// The value of a key; makes the key known.
  func value(_ key: String) -> Value? {
    if !known.contains(key) { known.append(key) }
    return table[key]
  }

  /// Whether the file has the key.
  func isGiven(_ key: String) -> Bool { value(key) != nil }

  /// Whether no mistake was recorded for the key so far.
  func isSound(_ key: String) -> Bool { !unsound.contains(key) }

  /// Reads a key into a property that holds its default. A mistake leaves the default.
  func read<Result>(_ key: String, _ property: inout Result, _ form: Form<Result>) {
    guard let value = value(key) else { return }
    guard let result = form.read(value, place.key(key), report) else {
      unsound.insert(key)
      return
    }
    property = result
  }

  /// Reads a table inside this one; a missing one is read as an empty one.
  func section(_ key: String, _ body: (TableReader) -> Void) {
    let value = value(key) ?? .table([:])
    guard case .table(let table) = value else {
      report.refuse(value, is: "is not a table", at: place.key(key), allowed: "[\(key)]")
      return
    }
    let reader = TableReader(table, at: place.key(key), report)
    body(reader)
    reader.refuseUnknownKeys()
  }

  /// Reads an array of tables. Messages call an element by its `name`, or by its position where that is nil.
  func tables(
    _ key: String, atMost most: Int = .max, name: ([String: Value]) -> String? = { _ in nil },
    _ body: (TableReader) -> Void
  ) {
    guard let value = value(key) else { return }
    let place = place.key(key)
    guard case .array(let elements) = value else {
      report.refuse(value, is: "is not an array of tables", at: place, allowed: "[[\(key)]]")
      return
    }
    if elements.count > most { report.refuse("\(elements.count) tables", at: place, allowed: "at most \(most)") }
    for (index, element) in elements.prefix(most).enumerated() {
      guard case .table(let table) = element else {
        report.refuse(element, is: "is not a table", at: place.index(index), allowed: "[[\(key)]]")
        continue
      }
      let reader = TableReader(table, at: name(table).map(place.named) ?? place.index(index), report)
      body(reader)
      reader.refuseUnknownKeys()
    }
  }

  /// Records a mistake if the key is missing.
  func require(_ key: String, allowed: String) {
    guard !isGiven(key) else { return }
    unsound.insert(key)
    report.refuse("missing", at: place.key(key), allowed: allowed)
  }

  /// Records that the value of a key, or its absence, is a mistake: `"VALUE" PREDICATE; expected ALLOWED`.
  func refuse(_ key: String, is predicate: String, allowed: String) {
    unsound.insert(key)
    let place = place.key(key)
    report.refuse(value(key).map { "\($0.shown(at: place)) \(predicate)" } ?? "missing", at: place, allowed: allowed)
  }

  /// Records that the key must not be there, whatever its value: `PROBLEM; REMEDY`.
  func refuse(_ key: String, _ problem: String, remedy: String) {
    unsound.insert(key)
    report.refuse(problem, at: place.key(key), allowed: remedy, .failure)
  }

  /// Records a mistake if the lower limit is above the upper one.
  func refuseInverted(_ lower: String, _ lowerLimit: Duration, _ upper: String, _ upperLimit: Duration) {
    guard lowerLimit > upperLimit, isSound(lower), isSound(upper) else { return }
    refuse(lower, is: "is above \(upper)", allowed: "at most \"\(durationText(upperLimit))\"")
  }

  /// Records a warning about a key. The caller makes sure that `text` holds no secret and no control character.
  func warn(_ key: String, _ text: String) { report.warn(text, at: place.key(key)) }

  /// Marks keys that are neither read nor reported as unknown.
  func ignore(_ isIgnored: (String) -> Bool) { ignored.formUnion(table.keys.filter(isIgnored)) }

  /// Records a mistake, with the path, if the file cannot be read or lacks the mark. Not for secrets.
  ///
  /// - Parameter mark: octets that the file must contain, and what they stand for.
  func requireReadable(_ key: String, _ path: String, mark: (octets: String, kind: String)? = nil) {
    do {
      let octets = try FileContent.read(path, limit: 16 << 20).octets
      guard let mark, octets.firstRange(of: Array(mark.octets.utf8)) == nil else { return }
      unsound.insert(key)
      report.refuse(
        "\(shownText(path)): the file contains no \(mark.kind)", at: place.key(key),
        allowed: "a file with \(mark.kind)")
    } catch {
      unsound.insert(key)
      let wanted = mark.map { "a file with \($0.kind)" } ?? "a regular file"
      report.refuse(
        "\(shownText(path)): \(error.found)", at: place.key(key),
        allowed: error.remedy(wanted, missing: "give the path of \(wanted)"), .failure)
    }
  }

  /// A longer list of keys does not fit on one line.
  private static let mostListedKeys = 6

  /// Records every key that was not asked for.
  ///
  /// - Parameter described: may give a better message than "unknown key".
  func refuseUnknownKeys(_ described: (String) -> (what: String, reason: String)? = { _ in nil }) {
    report.tables?.append((place, known))
    let expected = Set(known).union(ignored)
    for key in table.keys.sorted() where !expected.contains(key) {
      let (what, reason) = described(key) ?? (what: "unknown key", reason: report.isFull ? "" : hint(for: key))
      report.refuse(what, at: place.key(key), allowed: reason, .failure)
    }
    ignored.formUnion(table.keys)
  }

  /// What to write instead of an unknown key: a similar key of this table, the key of another table, or any of this table.
  private func hint(for key: String) -> String {
    if let meant = closest(to: key, among: known) ?? Configuration.elsewhere(key) { return "did you mean \(meant)?" }
    let isLong = known.count > TableReader.mostListedKeys
    return isLong ? "httpdnsd.toml(5) lists all keys" : "known keys are \(known.joined(separator: ", "))"
  }
}
