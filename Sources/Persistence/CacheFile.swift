// CacheFile.swift -- saves a cache to a file and loads it. Only on threads that may block.

import Files
import Glibc
import MessageCache

/// The result of a load.
public enum CacheLoad: Hashable, Sendable {
  /// The file was read; the counts say what became of its entries.
  case loaded(CacheCounts)
  /// The file does not exist.
  case nothing
  /// The file cannot be read and stays where it is. One line for the log.
  case unreadable(String)
  /// The file cannot be used and was renamed. One line for the log.
  case setAside(String)
}

/// The size of a saved cache.
public struct CacheSave: Hashable, Sendable {
  public var entries: Int
  /// The size of the file in octets.
  public var octets: Int
}

/// A cache file. It need not exist.
public struct CacheFile: Sendable {
  /// The path that `save` replaces and `load` reads.
  public let path: String
  /// Held by the one process that may replace or rename the file.
  private let lock: OwnerLock

  /// The name that an unusable file is renamed to; it replaces an older file of that name.
  public static func damagedName(of path: String) -> String { "\(path).damaged" }

  /// Opens nothing.
  public init(path: String) {
    self.path = path
    lock = OwnerLock(of: path, file: "\(path).lock")
  }

  /// Takes the lock that keeps other processes from replacing the file.
  ///
  /// - Throws: if another process holds it; `save` tries again.
  public func take() throws(FileProblem) { try lock.take() }

  /// Releases the lock, so that other processes may replace the file.
  public func leave() { lock.release() }

  /// Replaces the file with the usable entries of the cache. Other threads may use the cache meanwhile.
  ///
  /// - Parameter time: the current time.
  /// - Throws: if the file cannot be written or another process holds the lock; the old file then stays.
  public func save(
    _ cache: MessageCache, _ meanings: CacheMeanings, at time: CacheTime
  ) throws(FileProblem) -> CacheSave {
    try lock.take()
    let replacement = try FileReplacement(of: path)
    var writer = try CacheWriter(meanings, at: time) { (octets) throws(FileProblem) in try replacement.append(octets) }
    var problem: FileProblem?
    cache.forEachRecord(now: time.boot) { record in
      // The next process may be on another network, or compare no families.
      if record.isWithheldIPv6 { return true }
      do throws(FileProblem) { try writer.add(record) } catch { problem = error }
      return problem == nil
    }
    if let problem { throw problem }
    try writer.finish()
    try replacement.commit()
    return CacheSave(entries: writer.entries, octets: writer.octets)
  }

  /// Checks the whole file, then stores its usable entries in the cache. Other threads may use the cache meanwhile and
  /// see the entries as they arrive.
  ///
  /// - Parameters:
  ///   - time: the current time.
  ///   - isWanted: polled now and then; false stops the load.
  ///   - whenFresh: receives each stored entry that is still fresh.
  public func load(
    into cache: MessageCache, _ meanings: CacheMeanings, at time: CacheTime, while isWanted: () -> Bool = { true },
    whenFresh: (LoadedEntry) -> Void = { _ in }
  ) -> CacheLoad {
    let octets: [UInt8]
    do {
      guard let found = try content() else { return .nothing }
      octets = found
    } catch let damage as CacheDamage {
      return setAside(damage)
    } catch { return .unreadable("\(error)") }
    do throws(CacheDamage) {
      return .loaded(
        try CacheImage(octets).restore(into: cache, meanings, at: time, while: isWanted, whenFresh: whenFresh))
    } catch { return setAside(error) }
  }

  /// - Returns: nil if the file does not exist.
  /// - Throws: `CacheDamage` if the beginning shows that the file is unusable, `FileProblem` if it cannot be read.
  private func content() throws -> [UInt8]? {
    // O_NONBLOCK: opening a FIFO would block until a writer opens it.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw FileProblem(ofLastCall: path)
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw FileProblem(ofLastCall: path) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw FileProblem(path, "it is not a regular file") }
    // Checked first, so that a foreign file is not read as a whole.
    try CacheImage.checkBeginning(read(file, min(status.st_size, CacheFormat.shortest)))
    guard status.st_size <= CacheFormat.longest else { throw CacheDamage.lengths }
    return try read(file, status.st_size)
  }

  /// Reads the first octets of the file, fewer if it has shrunk.
  private func read(_ file: Int32, _ length: Int) throws(FileProblem) -> [UInt8] {
    var problem: FileProblem?
    let octets = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
      while filled < length, problem == nil {
        let count = pread(file, buffer.baseAddress! + filled, length - filled, filled)
        if count < 0, errno == EINTR { continue }
        if count < 0 { problem = FileProblem(ofLastCall: path) }
        guard count > 0 else { break }
        filled += count
      }
    }
    if let problem { throw problem }
    return octets
  }

  private func setAside(_ damage: CacheDamage) -> CacheLoad {
    do throws(FileProblem) { try lock.take() } catch { return .unreadable("\(error); \(damage)") }
    let name = CacheFile.damagedName(of: path)
    guard rename(path, name) == 0 else { return .unreadable("\(FileProblem(ofLastCall: path)); \(damage)") }
    return .setAside("\(path) is now \(name): \(damage)")
  }
}
