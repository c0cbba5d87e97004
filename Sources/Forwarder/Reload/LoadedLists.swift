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

  init() {}

  /// Reads the texts and makes a table, unless an earlier one was made of the same. Blocks.
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
    if isSame(as: earlier) {
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

  private func isSame(as earlier: LoadedLists) -> Bool {
    uses == earlier.uses && sources.map(\.place) == earlier.sources.map(\.place)
      && sources.allSatisfy { texts[$0.place]?.version == earlier.texts[$0.place]?.version }
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
