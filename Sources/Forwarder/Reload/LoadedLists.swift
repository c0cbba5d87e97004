// LoadedLists.swift -- the lists of a configuration as they were read, and the table made of them. Any thread.

import Ciphers
import Configuration
import EventLoop
import ListStore
import Lists
import Routing

/// The lists of a configuration.
struct LoadedLists: Sendable {
  /// In the order of `Configuration.usedLists`.
  private(set) var sources: [ListSource] = []
  private(set) var texts = ListTexts()
  private var uses: [ListUse] = []
  /// Nil without lists.
  private(set) var table: ListTable?
  /// What the table has of each list, or why it has nothing.
  private(set) var results: [ListSource.Place: Result<ListLoaded, ListFault>] = [:]
  private(set) var time = Duration.zero
  /// Lists that cannot be read, but have names in the table. While there are any, it is the table before, which lacks what
  /// else has changed: without these names, queries would take other routes.
  private(set) var unread: [ListSource.Place: ListFault] = [:]

  init() {}

  /// Reads the texts and makes a table, unless an earlier one was made of the same or has to stay. Blocks.
  ///
  /// - Parameters:
  ///   - uses: of lists by rules.
  ///   - present: the texts that are used already.
  ///   - earlier: the lists until now.
  init(
    _ configuration: Configuration, _ uses: [ListUse], _ folder: ListFolder, _ key: ListKey,
    keeping present: ListTexts = ListTexts(), after earlier: LoadedLists
  ) {
    guard !uses.isEmpty else { return }
    let start = BootInstant.now
    self.uses = uses
    sources = configuration.usedLists().lists.map { ListSource($0) }
    texts = folder.load(sources, keeping: present)
    let isAlike = uses == earlier.uses && sources.map(\.place) == earlier.sources.map(\.place)
    if isAlike, hasTexts(of: earlier) {
      (table, results, time) = (earlier.table, earlier.results, earlier.time)
      return
    }
    var faults: [ListSource.Place: ListFault] = [:]
    let names = sources.enumerated().map { index, source -> ListNames in
      let blocks = uses.contains { $0.list == index && $0.blocks }
      guard let text = texts[source.place] else { return ListNames() }
      do throws(ListFault) { return try text.names(key, blocks: blocks) } catch {
        faults[source.place] = error
        return ListNames()
      }
    }
    if isAlike { unread = lost(from: earlier, faults) }
    guard unread.isEmpty else {
      (table, results, texts, time) = (earlier.table, earlier.results, earlier.texts, .now - start)
      for place in unread.keys { texts.remove(place) }
      return
    }
    let places = sources.map { source in earlier.sources.firstIndex { $0.place == source.place } }
    let table = ListTable(
      names, uses: uses, key,
      after: earlier.table.map { ListTable.Previous($0, uses: earlier.uses, lists: places) })
    for (index, source) in sources.enumerated() where texts[source.place] != nil {
      let (count, kept) = (table.nameCounts[index], table.keptCounts[index])
      let former = places[index].flatMap { earlier.table?.nameCounts[$0] } ?? 0
      results[source.place] =
        faults[source.place].map { .failure($0) }
        ?? .success(
          ListLoaded(names: count, leftOut: names[index].leftOut, added: count - kept, removed: max(0, former - kept)))
    }
    self.table = table
    time = .now - start
  }

  /// Whether an earlier table was made of the same texts, and all of them could be read.
  private func hasTexts(of earlier: LoadedLists) -> Bool {
    sources.allSatisfy { source in
      if case .failure = earlier.results[source.place] { return false }
      return texts[source.place]?.version == earlier.texts[source.place]?.version
    }
  }

  /// The lists of an earlier table that has the same lists whose names another one would lack.
  private func lost(from earlier: LoadedLists, _ faults: [ListSource.Place: ListFault])
    -> [ListSource.Place: ListFault]
  {
    var lost: [ListSource.Place: ListFault] = [:]
    for (source, names) in zip(sources, earlier.table?.nameCounts ?? []) where names > 0 {
      let absent = texts[source.place] == nil ? texts.faults[source.place] ?? .failed("its text is lost") : nil
      lost[source.place] = faults[source.place] ?? absent
    }
    return lost
  }
}

extension ListSource {
  package init(_ list: Configuration.List) {
    let place: Place = list.url.map { .url($0.text.revealed) } ?? .file(list.file ?? "")
    self.init(
      place, name: list.name == place.description ? nil : list.name, interval: list.interval,
      caFile: list.caFile ?? "", proxy: list.proxy.map { $0.text.revealed } ?? "", maxSize: list.maxSize)
  }
}

extension Secret {
  fileprivate var revealed: String { String(decoding: reveal, as: UTF8.self) }
}
