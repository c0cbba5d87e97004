// ListFolder.swift -- the copies of the lists in the state directory: one for each list, replaced only by a whole new one.
//
// Files have copies as well as URLs. A program that writes a list in place may fail half-way, or write an error page: without
// a copy the last good list would be lost with the next change of another one, or with a restart.

import Files
import Glibc
import Logging
import Persistence
import Synchronization

/// The folder `lists` of the state directory. Any thread; blocks for the disk.
public final class ListFolder: Sendable {
  /// The most names of all lists together, as often as they stand there.
  public static let mostNames = 4_000_000

  /// The same, for this folder.
  let mostNames: Int
  private let state: StateFolder
  private let folder: String
  private let note: @Sendable (Logger.Level, String) -> Void
  private let problem = Mutex<String?>(nil)

  /// - Parameters:
  ///   - state: decides whether copies may be written.
  ///   - note: logs one line for the operator; called on any thread.
  public convenience init(_ state: StateFolder, note: @escaping @Sendable (Logger.Level, String) -> Void) {
    self.init(state, mostNames: ListFolder.mostNames, note: note)
  }

  init(_ state: StateFolder, mostNames: Int, note: @escaping @Sendable (Logger.Level, String) -> Void) {
    self.state = state
    self.mostNames = mostNames
    self.note = note
    folder = "\(state.path)/lists"
  }

  /// Whether there may be copies.
  var isThere: Bool { access(folder, F_OK) == 0 }

  func path(of place: ListSource.Place) -> String { "\(folder)/\(place.fingerprint)" }

  /// Begins a new copy; nil if the text has to stay in memory.
  func replacement(of place: ListSource.Place) -> FileReplacement? {
    guard state.take() else {
      isNotWorking(FileProblem(folder, "this process may not write there"))
      return nil
    }
    mkdir(folder, 0o700)
    do throws(FileProblem) {
      return try FileReplacement(of: path(of: place))
    } catch {
      isNotWorking(error)
      return nil
    }
  }

  /// Logs why a text stays in memory, once.
  func isNotWorking(_ problem: FileProblem) {
    let isNew = self.problem.withLock { known in
      defer { known = problem.description }
      return known == nil
    }
    if isNew { note(.warning, "lists are held in memory and fetched again after a restart: \(problem)") }
  }

  /// A copy was written.
  func isWorking() { problem.withLock { $0 = nil } }

  /// The copy of a list; nil if it does not exist, is damaged, or is that of another list.
  public func copy(of source: ListSource) -> ListText? { (try? copyIfReadable(of: source)) ?? nil }

  /// The same, but throws `hiddenCopy` if the copy is another user's.
  private func copyIfReadable(of source: ListSource) throws(ListFault) -> ListText? {
    let (descriptor, identity): (Int32, FileIdentity)
    do throws(ListFault) { (descriptor, identity) = try ListFile.open(path(of: source.place)) } catch {
      if error == .unreadable(EACCES) { throw .hiddenCopy }
      return nil
    }
    let count = min(identity.size, ListRecord.longest)
    var end = [UInt8](repeating: 0, count: count)
    guard pread(descriptor, &end, count, identity.size - count) == count,
      let details = ListRecord.details(end, size: identity.size, of: source.place)
    else {
      close(descriptor)
      return nil
    }
    return ListText(descriptor, details, isPrivate: true)
  }

  /// Removes the copies of lists that are no longer configured, and what a killed process has left.
  func clean(keeping sources: [ListSource]) {
    guard let names = Folder.names(in: folder), !names.isEmpty, state.take() else { return }
    let known = Set(sources.map(\.place.fingerprint))
    for name in names where !known.contains(name) {
      let digits = name.hasSuffix(".new") ? name.dropLast(4) : name[...]
      guard digits.utf8.count == 32, digits.utf8.allSatisfy({ 48...57 ~= $0 || 97...102 ~= $0 }) else { continue }
      unlink("\(folder)/\(name)")
    }
  }

  /// The texts for a table that is built before the lists are watched and fetched: at the start, and for a reload. Writes
  /// nothing. Blocks.
  ///
  /// - Parameters:
  ///   - sources: the lists of the configuration.
  ///   - present: texts that are used already.
  /// - Returns: for a file that cannot be used, the text of its copy, and the fault.
  public func load(_ sources: [ListSource], keeping present: ListTexts = ListTexts()) -> ListTexts {
    var result = ListTexts()
    let sources = sources.unique
    for source in sources {
      guard let text = present[source.place] else { continue }
      result.texts[source.place] = text
      result.faults[source.place] = present.faults[source.place]
    }
    for source in sources where present[source.place] == nil {
      let copy = copy(of: source)
      let room = mostNames - result.names
      do throws(ListFault) {
        guard let text = try text(source, copy, room) else { continue }
        guard text.details.names <= room else { throw .tooManyNames(mostNames) }
        result.texts[source.place] = text
      } catch {
        result.faults[source.place] = error
        if let copy, copy.details.names <= room { result.texts[source.place] = copy }
      }
    }
    return result
  }

  private func text(_ source: ListSource, _ copy: ListText?, _ room: Int) throws(ListFault) -> ListText? {
    guard case .file(let path) = source.place else {
      if let copy { return copy }
      return try copyIfReadable(of: source)
    }
    if let copy, copy.details.identity == FileIdentity(path: path) { return copy }
    return try ListFile.text(path, limit: source.maxSize, room: room, most: mostNames)
  }

  /// The text of a list for `httpdnsd check`: a file as it is now, else the copy. Writes nothing. Blocks.
  ///
  /// - Returns: nil if there is no copy yet.
  /// - Throws: `hiddenCopy` if it is another user's.
  public func textNow(_ source: ListSource) throws(ListFault) -> ListText? {
    guard case .file(let path) = source.place else { return try copyIfReadable(of: source) }
    return try ListFile.text(path, limit: source.maxSize, room: mostNames, most: mostNames)
  }
}
