// ListFile.swift -- reads the file of a list, and never waits for anything but a disk.

import Glibc
import Lists

/// Files of lists. Blocks.
enum ListFile {
  /// Opens a regular file. The descriptor belongs to the caller.
  static func open(_ path: String) throws(ListFault) -> (descriptor: Int32, identity: FileIdentity) {
    // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    // No such device: a socket.
    guard descriptor >= 0 else { throw errno == ENXIO ? .noFile("socket") : .unreadable(errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw .unreadable(code)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      switch status.st_mode & S_IFMT {
      case S_IFDIR: throw .noFile("folder")
      case S_IFIFO: throw .noFile("FIFO")
      default: throw .noFile("device")
      }
    }
    return (descriptor, FileIdentity(status))
  }

  /// The text of a file, in place: it is that of the file as long as that has the same identity.
  ///
  /// - Parameters:
  ///   - room: the names that it may have.
  ///   - most: those that all lists together may have.
  static func text(_ path: String, limit: Int, room: Int, most: Int) throws(ListFault) -> ListText {
    let (descriptor, identity) = try open(path)
    var details = ListText.Details(octets: identity.size, names: 0, identity: identity)
    let unread = ListText(descriptor, details, isPrivate: false)
    guard identity.size <= limit else { throw .tooLarge(limit) }
    var reader = ListReader()
    var pieces = unread.pieces()
    while let piece = try pieces.next() {
      reader.read(piece)
      guard reader.names <= room else { throw .tooManyNames(most) }
    }
    do throws(ListRefusal) { try reader.finish() } catch { throw .refused(error) }
    guard reader.names <= room else { throw .tooManyNames(most) }
    details.names = reader.names
    // `unread` closes its own.
    let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else { throw .unreadable(errno) }
    let text = ListText(own, details, isPrivate: false)
    guard isUnchanged(own, identity) else { throw .changing }
    return text
  }

  /// Copies a file, if it is a list.
  ///
  /// - Parameters:
  ///   - present: the text that is used now.
  ///   - room: the names that the text may have.
  static func copy(_ path: String, of source: ListSource, room: Int, after present: ListText?, to folder: ListFolder)
    -> ListOutcome
  {
    do throws(ListFault) {
      let (descriptor, identity) = try open(path)
      defer { close(descriptor) }
      if let present, present.isPrivate, present.details.identity == identity { return .unchanged(nil) }
      guard identity.size <= source.maxSize else { throw .tooLarge(source.maxSize) }
      let draft = ListDraft(of: source, room: room, in: folder)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ListText.pieceLength, alignment: 16)
      defer { buffer.deallocate() }
      while true {
        let count = read(descriptor, buffer.baseAddress, buffer.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .unreadable(errno) }
        guard count > 0 else { break }
        if !draft.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { break }
      }
      guard isUnchanged(descriptor, identity) else { throw .changing }
      // A text in place says what the file says now.
      let isComparable = present.map { $0.isPrivate || $0.details.identity == identity } ?? false
      return draft.finish(ListDraft.Origin(identity: identity), after: isComparable ? present : nil)
    } catch { return .fault(error) }
  }

  private static func isUnchanged(_ descriptor: Int32, _ identity: FileIdentity) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && FileIdentity(status) == identity
  }
}
