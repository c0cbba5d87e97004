// ListDraft.swift -- a text that is coming in: checked as it comes, on the way to its place on the disk.
//
// A text is never in memory as a whole unless the disk takes none of it. Nothing of it is used before all of it has come and
// is a list. Used on one thread at a time.

import Files
import Glibc
import Lists
import Synchronization

/// What has become of a text.
enum ListOutcome: Sendable {
  /// It is a list that differs from the present one.
  case changed(ListText)
  /// It has the octets of the present one; a text if that is in a better place now.
  case unchanged(ListText?)
  case fault(ListFault)

  /// The new text, or the same in a better place.
  var text: ListText? {
    switch self {
    case .changed(let text): text
    case .unchanged(let text): text
    case .fault: nil
    }
  }
}

/// A text that is coming in.
final class ListDraft: Sendable {
  /// What the server or the file says of the text.
  struct Origin: Sendable {
    var entityTag: String?
    var lastModified: String?
    var identity: FileIdentity?
  }

  private let state: Mutex<Incoming>

  init(of source: ListSource, room: Int, in folder: ListFolder) {
    state = Mutex(Incoming(source, folder, room))
  }

  /// Why no more of the text is taken; nil if it is fine so far.
  var fault: ListFault? { state.withLock { $0.fault } }

  /// Takes the next piece. Blocks for the disk.
  ///
  /// - Returns: false if the text is not taken, and further pieces are useless.
  func append(_ piece: UnsafeRawBufferPointer) -> Bool {
    // A pointer may not pass into the lock; an address may.
    let (address, count) = (UInt(bitPattern: piece.baseAddress), piece.count)
    return state.withLock {
      $0.append(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count))
    }
  }

  /// Takes the whole text. Blocks.
  ///
  /// - Parameter present: the text that is used now.
  func finish(_ origin: Origin, after present: ListText?) -> ListOutcome {
    state.withLock { $0.finish(origin, after: present) }
  }

  /// Takes a text that is used already. Blocks.
  func copy(_ text: ListText) -> ListOutcome {
    var pieces = text.pieces()
    do throws(ListFault) {
      while let piece = try pieces.next(), append(piece) {}
    } catch { return .fault(error) }
    let details = text.details
    return finish(Origin(entityTag: details.entityTag, lastModified: details.lastModified), after: text)
  }
}

/// What has come of a text.
private struct Incoming: ~Copyable {
  private let source: ListSource
  private let folder: ListFolder
  /// The names that the text may have.
  private let room: Int
  private(set) var fault: ListFault?
  private var reader = ListReader()
  private var octets = 0
  /// Octets that are not in the file.
  private var pending: [UInt8] = []
  /// The copy; nil if the text is in memory.
  private var file: FileReplacement?
  private var hasBegun = false

  init(_ source: ListSource, _ folder: ListFolder, _ room: Int) {
    (self.source, self.folder, self.room) = (source, folder, room)
  }

  mutating func append(_ piece: UnsafeRawBufferPointer) -> Bool {
    guard fault == nil else { return false }
    guard piece.count <= source.maxSize - octets else {
      fault = .tooLarge(source.maxSize)
      return false
    }
    if !hasBegun {
      hasBegun = true
      file = folder.replacement(of: source.place)
    }
    octets += piece.count
    reader.read(piece)
    guard reader.names <= room else {
      fault = .tooManyNames(folder.mostNames)
      return false
    }
    pending.append(contentsOf: piece)
    if file != nil, pending.count >= ListText.pieceLength { flush() }
    return fault == nil
  }

  mutating func finish(_ origin: ListDraft.Origin, after present: ListText?) -> ListOutcome {
    if let fault { return .fault(fault) }
    do throws(ListRefusal) { try reader.finish() } catch { return .fault(.refused(error)) }
    guard reader.names <= room else { return .fault(.tooManyNames(folder.mostNames)) }
    if file != nil { flush() }
    if let fault { return .fault(fault) }
    let isSame = present.map { isEqual(to: $0) } ?? false
    let details = ListText.Details(
      octets: octets, names: reader.names, entityTag: ListRecord.tag(origin.entityTag),
      lastModified: ListRecord.tag(origin.lastModified), identity: origin.identity)
    let version = isSame ? present?.version : nil
    let text = commit(details, version) ?? ListText(pending, details, version: version)
    pending = []
    if let fault { return .fault(fault) }
    return isSame ? .unchanged(text) : .changed(text)
  }

  /// Makes the file the list's copy; nil if the text is in memory.
  private mutating func commit(_ details: ListText.Details, _ version: Int?) -> ListText? {
    guard let file else { return nil }
    do throws(FileProblem) {
      try file.append(ListRecord.lines(source.place, details))
      // The descriptor stays that of this copy when a later one replaces it.
      let written = openWritten()
      guard written >= 0 else { throw FileProblem(ofLastCall: folder.path(of: source.place)) }
      let text = ListText(written, details, isPrivate: true, version: version)
      try file.commit()
      self.file = nil
      folder.isWorking()
      return text
    } catch {
      moveToMemory(error)
      return nil
    }
  }

  private mutating func flush() {
    do throws(FileProblem) {
      try file?.append(pending)
      pending.removeAll(keepingCapacity: true)
    } catch { moveToMemory(error) }
  }

  /// Goes on without the disk, which takes no more.
  private mutating func moveToMemory(_ problem: FileProblem) {
    folder.isNotWorking(problem)
    var text: [UInt8] = []
    text.reserveCapacity(octets)
    let isComplete = forEachWritten(octets - pending.count) { text.append(contentsOf: $0) }
    pending = text + pending
    file = nil
    if !isComplete { fault = .failed(problem.description) }
  }

  private func isEqual(to present: ListText) -> Bool {
    guard present.details.octets == octets else { return false }
    var place = 0
    var other = [UInt8](repeating: 0, count: ListText.pieceLength)
    func isNext(_ piece: UnsafeRawBufferPointer) -> Bool {
      var piece = piece[...]
      while !piece.isEmpty {
        let count = other.withUnsafeMutableBytes { buffer in
          let most = min(piece.count, buffer.count)
          return (try? present.read(at: place, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<most]))) ?? 0
        }
        guard count > 0, piece.prefix(count).elementsEqual(other[..<count]) else { return false }
        place += count
        piece = piece.dropFirst(count)
      }
      return true
    }
    guard file == nil else {
      var isEqual = true
      return forEachWritten(octets) { isEqual = isEqual && isNext($0) } && isEqual
    }
    return pending.withUnsafeBytes { isNext($0) }
  }

  /// Opens what is in the file so far, for reading.
  private func openWritten() -> Int32 {
    open(FileReplacement.temporaryName(of: folder.path(of: source.place)), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
  }

  /// Reads what is in the file so far.
  ///
  /// - Returns: false if that is not all of it.
  private func forEachWritten(_ size: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
    let descriptor = openWritten()
    guard descriptor >= 0 else { return size == 0 }
    let written = ListText(descriptor, ListText.Details(octets: size, names: 0), isPrivate: true)
    var pieces = written.pieces()
    do throws(ListFault) {
      while let piece = try pieces.next() { body(piece) }
      return true
    } catch { return false }
  }
}
