// TableReader.swift -- reads the keys of one table into properties, and knows which keys nobody asked for.

/// Reads one TOML table. Every key that is asked for is known; `refuseUnknownKeys` reports the others.
final class TableReader {
  /// Where the table stands.
  let place: Place
  /// Where mistakes go.
  let report: Report
  private let table: [String: Value]
  /// The keys that were asked for.
  private(set) var known: [String] = []
  private var ignored: Set<String> = []
  private var unsound: Set<String> = []
  /// The keys whose secret is in the text itself.
  var inlineSecrets: [String] = []

  init(_ table: [String: Value], at place: Place, _ report: Report) {
    self.table = table
    self.place = place
    self.report = report
  }

  /// The value of a key, which is known from now on.
  func value(_ key: String) -> Value? {
    if !known.contains(key) { known.append(key) }
    return table[key]
  }

  /// Whether the file has the key.
  func isGiven(_ key: String) -> Bool { value(key) != nil }

  /// Whether nothing wrong was found at the key.
  func isSound(_ key: String) -> Bool { !unsound.contains(key) }

  /// Reads a key into a property that holds its default. A mistake leaves the default.
  func read<Result: Equatable>(_ key: String, _ property: inout Result, _ form: Form<Result>) {
    guard let value = value(key) else { return }
    let place = place.key(key)
    if let needs = UnavailableFeature.needs(of: place, value) {
      // What else is wrong with it helps nobody.
      let unheard = Report(file: report.file, environment: report.environment)
      if form.read(value, place, unheard) != property { refuse(key, allowed: "its default; \(needs) in this version") }
      return
    }
    guard let result = form.read(value, place, report) else {
      unsound.insert(key)
      return
    }
    property = result
  }

  /// Reads a table of its own below this one.
  func section(_ key: String, _ body: (TableReader) -> Void) {
    guard let value = value(key) else { return }
    guard case .table(let table) = value else {
      report.refuse(value, at: place.key(key), allowed: "a table: [\(key)]")
      return
    }
    let reader = TableReader(table, at: place.key(key), report)
    body(reader)
    reader.refuseUnknownKeys()
  }

  /// Reads an array of tables; `name` gives what an element is called by in messages, else by its index.
  func tables(
    _ key: String, atMost most: Int = .max, name: ([String: Value]) -> String? = { _ in nil },
    _ body: (TableReader) -> Void
  ) {
    guard let value = value(key) else { return }
    let place = place.key(key)
    guard case .array(let elements) = value else {
      report.refuse(value, at: place, allowed: "an array of tables: [[\(key)]]")
      return
    }
    if elements.count > most {
      report.refuse("\(elements.count) of [[\(key)]]", at: place, allowed: "at most \(most)")
    }
    for (index, element) in elements.prefix(most).enumerated() {
      guard case .table(let table) = element else {
        report.refuse(element, at: place.index(index), allowed: "a table: [[\(key)]]")
        continue
      }
      let reader = TableReader(table, at: name(table).map(place.named) ?? place.index(index), report)
      body(reader)
      reader.refuseUnknownKeys()
    }
  }

  /// Records that the file must have the key.
  func require(_ key: String, allowed: String) {
    guard !isGiven(key) else { return }
    unsound.insert(key)
    report.refuse("nothing", at: place.key(key), allowed: allowed)
  }

  /// Records that the value of a key, or its absence, is not allowed here.
  func refuse(_ key: String, allowed: String) {
    unsound.insert(key)
    let place = place.key(key)
    report.refuse(value(key)?.shown(at: place) ?? "nothing", at: place, allowed: allowed)
  }

  /// Records that a lower limit is above an upper one.
  func refuseInverted(_ lower: String, _ lowerLimit: Duration, _ upper: String, _ upperLimit: Duration) {
    guard lowerLimit > upperLimit, isSound(lower), isSound(upper) else { return }
    refuse(lower, allowed: "at most \(upper), which is \"\(durationText(upperLimit))\"")
  }

  /// Records a warning about a key; `text` must be fit to be shown.
  func warn(_ key: String, _ text: String) { report.warn(text, at: place.key(key)) }

  /// Leaves keys alone: neither read nor unknown.
  func ignore(_ isIgnored: (String) -> Bool) { ignored.formUnion(table.keys.filter(isIgnored)) }

  /// Records that the file of a path cannot be read, or is of another kind.
  ///
  /// - Parameter mark: octets that must be somewhere in it, and what such a file has.
  func requireReadable(_ key: String, _ path: String, mark: (octets: String, kind: String)? = nil) {
    do {
      let octets = try FileContent.read(path, limit: 16 << 20).octets
      guard let mark, octets.firstRange(of: Array(mark.octets.utf8)) == nil else { return }
      unsound.insert(key)
      report.refuse("a file without \(mark.kind)", at: place.key(key), allowed: "a file with \(mark.kind)")
    } catch {
      unsound.insert(key)
      let wanted = mark.map { "a file with \($0.kind)" } ?? "a regular file"
      report.refuse(
        error.found, at: place.key(key), allowed: error.remedy(wanted, missing: "give the path of \(wanted)"),
        error.wording)
    }
  }

  /// Nobody reads a list of more keys than that in one line.
  private static let mostListedKeys = 16

  /// Records every key that was not asked for; `described` may say what a key is instead of unknown, and why not here.
  func refuseUnknownKeys(_ described: (String) -> (what: String, reason: String)? = { _ in nil }) {
    let expected = Set(known).union(ignored)
    for key in table.keys.sorted() where !expected.contains(key) {
      if let (what, reason) = described(key) {
        report.refuse(what, at: place.key(key), allowed: reason, .failure)
        continue
      }
      let similar = report.isFull ? "" : closest(to: key, among: known).map { " (did you mean \"\($0)\"?)" } ?? ""
      let isLong = known.count > TableReader.mostListedKeys
      let allowed = isLong ? "the keys that httpdnsd.toml(5) and README list" : known.joined(separator: ", ")
      report.refuse("an unknown key" + similar, at: place.key(key), allowed: allowed)
    }
    ignored.formUnion(table.keys)
  }
}
