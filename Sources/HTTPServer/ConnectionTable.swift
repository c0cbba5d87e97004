// ConnectionTable.swift -- limits the connections of a server; identifies them by descriptor.

import Glibc

/// The open connections. Closed ones are removed lazily, when the table is full.
struct ConnectionTable {
  private struct Entry {
    var descriptor: Int32
    /// Identifies the socket: the kernel may have reused the descriptor.
    var inode: ino_t
    var lastUse: UInt64
  }

  private let limit: Int
  private var entries: [Entry] = []
  private var uses: UInt64 = 0

  /// - Precondition: `limit` is positive.
  init(limit: Int) {
    precondition(limit > 0)
    self.limit = limit
  }

  /// - Parameter busy: the descriptors of the connections that wait for an answer.
  /// - Returns: the connection to close: the one that has been idle for longest, or this one if all are busy.
  /// - Complexity: O(limit), with one system call per connection if the table is full.
  mutating func add(_ descriptor: Int32, busy: Set<Int32>) -> Int32? {
    guard let inode = ConnectionTable.inode(descriptor) else { return nil }
    uses += 1
    entries.removeAll { $0.descriptor == descriptor }
    if entries.count >= limit { entries.removeAll { ConnectionTable.inode($0.descriptor) != $0.inode } }
    var closed: Int32?
    if entries.count >= limit {
      let idle = entries.indices.filter { !busy.contains(entries[$0].descriptor) }
      guard let oldest = idle.min(by: { entries[$0].lastUse < entries[$1].lastUse }) else { return descriptor }
      closed = entries.remove(at: oldest).descriptor
    }
    entries.append(Entry(descriptor: descriptor, inode: inode, lastUse: uses))
    return closed
  }

  /// Records a request on a connection.
  mutating func used(_ descriptor: Int32) {
    guard let index = entries.firstIndex(where: { $0.descriptor == descriptor }) else { return }
    uses += 1
    entries[index].lastUse = uses
  }

  /// The inode of a socket; nil if the descriptor is not an open socket.
  private static func inode(_ descriptor: Int32) -> ino_t? {
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    return status.st_ino
  }
}
