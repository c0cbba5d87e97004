// ListText.swift -- the text of one list: its names for a table, and the line that decides about a name.
//
// A text is an open file that is only replaced as a whole, or octets in memory: whatever happens to the list's file or URL
// meanwhile, a table can be built from it at any time.

import Files
import Glibc
import Lists
import Synchronization

/// The text of a list that is used. Any thread.
public final class ListText: Sendable {
  /// What is known of a text beside its octets.
  struct Details: Hashable, Sendable {
    /// The number of octets.
    var octets: Int
    /// The number of names, as often as they stand there.
    var names: Int
    /// For the next request; nil without one.
    var entityTag: String?
    var lastModified: String?
    /// The file that it was read from; nil for a URL.
    var identity: FileIdentity?
  }

  private enum Storage: Sendable {
    /// A descriptor, which this object closes.
    case open(Int32)
    case memory([UInt8])
  }

  let details: Details
  /// The same for texts with the same octets.
  package let version: Int
  /// Whether no other program writes to it.
  let isPrivate: Bool
  private let storage: Storage

  /// The octets of one piece.
  static let pieceLength = 1 << 16
  private static let versions = Atomic<Int>(0)

  /// A file, whose descriptor belongs to the text from now on.
  ///
  /// - Parameter version: that of a text with the same octets; nil if it is not known to have the same.
  init(_ descriptor: Int32, _ details: Details, isPrivate: Bool, version: Int? = nil) {
    self.details = details
    self.isPrivate = isPrivate
    self.version = version ?? ListText.nextVersion
    storage = .open(descriptor)
  }

  init(_ octets: [UInt8], _ details: Details, version: Int? = nil) {
    self.details = details
    isPrivate = true
    self.version = version ?? ListText.nextVersion
    storage = .memory(octets)
  }

  deinit {
    if case .open(let descriptor) = storage { close(descriptor) }
  }

  private static var nextVersion: Int { versions.wrappingAdd(1, ordering: .relaxed).newValue }

  /// Whether it is held in memory.
  public var isInMemory: Bool {
    if case .memory = storage { true } else { false }
  }

  /// The number of octets.
  public var octets: Int { details.octets }

  /// The names of the text. Reads all of it, in pieces; blocks.
  ///
  /// - Parameter blocks: whether a rule that blocks uses the list.
  public func names(_ key: ListKey, blocks: Bool) throws(ListFault) -> ListNames {
    var pieces = pieces()
    do {
      return try ListNames(key, blocks: blocks) { try pieces.next() }
    } catch let fault as ListFault {
      throw fault
    } catch {
      throw (error as? ListRefusal).map { .refused($0) } ?? .unreadable(EIO)
    }
  }

  func pieces() -> Pieces { Pieces(self) }

  /// Reads octets from an offset on.
  ///
  /// - Returns: how many; 0 at the end.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(ListFault) -> Int {
    let most = min(buffer.count, details.octets - offset)
    guard most > 0 else { return 0 }
    switch storage {
    case .memory(let octets):
      octets.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<(offset + most)])) }
      return most
    case .open(let descriptor):
      while true {
        let count = pread(descriptor, buffer.baseAddress, most, offset)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .unreadable(errno) }
        // A file that is not ours may have become shorter.
        guard count > 0 else { throw .changing }
        return count
      }
    }
  }

  /// When the file was last changed, or the text was last known to be the server's, in seconds since 1970; nil if it is not
  /// known.
  public var confirmedAt: Int64? {
    if let identity = details.identity { return identity.modified / 1_000_000_000 }
    guard case .open(let descriptor) = storage else { return nil }
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int64(status.st_mtim.tv_sec).clamped(to: NumberRange.seconds) : nil
  }

  /// Notes on the disk that the text is the server's at that time. May block.
  func confirm(at time: Int64) {
    guard case .open(let descriptor) = storage, isPrivate else { return }
    var times = [timespec](repeating: timespec(tv_sec: Int(time), tv_nsec: 0), count: 2)
    _ = futimens(descriptor, &times)
  }

  /// A text piece by piece; a piece is valid until the next one is read.
  struct Pieces: ~Copyable {
    private let text: ListText
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ListText.pieceLength, alignment: 16)
    private var offset = 0

    init(_ text: ListText) { self.text = text }

    deinit { buffer.deallocate() }

    /// The next piece; nil at the end.
    mutating func next() throws(ListFault) -> UnsafeRawBufferPointer? {
      let count = try text.read(at: offset, into: buffer)
      offset += count
      return count > 0 ? UnsafeRawBufferPointer(rebasing: buffer[..<count]) : nil
    }
  }
}

extension ListText: CustomStringConvertible {
  public var description: String { "a text of \(grouped(details.octets)) octets" }
}

/// The texts of several lists at one moment.
public struct ListTexts: Sendable {
  var texts: [ListSource.Place: ListText] = [:]
  /// Why a list has no text, or an older one.
  public internal(set) var faults: [ListSource.Place: ListFault] = [:]

  /// None.
  public init() {}

  /// The text of a list; nil if it has none yet.
  public subscript(place: ListSource.Place) -> ListText? { texts[place] }

  package mutating func remove(_ place: ListSource.Place) { texts[place] = nil }

  /// All names, as often as they stand there.
  var names: Int { texts.values.reduce(0) { $0 + $1.details.names } }
}
