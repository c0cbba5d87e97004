// CacheFile.swift -- the file that a cache is saved to and loaded from. On a thread that may block.

import Files
import Glibc
import MessageCache

/// What a load came to.
public enum CacheLoad: Hashable, Sendable {
  /// Entries were read.
  case loaded(CacheCounts)
  /// There is no file.
  case nothing
  /// It cannot be read; it stays where it is. One line for a person.
  case unreadable(String)
  /// It cannot be used, and has another name now. One line for a person.
  case setAside(String)
}

/// How much was saved.
public struct CacheSave: Hashable, Sendable {
  /// Entries.
  public var entries: Int
  /// Octets of the file.
  public var octets: Int
}

/// A cache file at a path.
public struct CacheFile: Sendable {
  /// The path.
  public let path: String
  /// Of all that have it, who may replace it and give it another name.
  private let lock: OwnerLock

  /// What a file that cannot be used is called; there is one, the last.
  public static func damagedName(of path: String) -> String { "\(path).damaged" }

  /// The file at that path, which need not exist.
  public init(path: String) {
    self.path = path
    lock = OwnerLock(of: path, file: "\(path).lock")
  }

  /// Keeps other programs from replacing it.
  ///
  /// - Throws: where another program does so; `save` tries it again.
  public func take() throws(FileProblem) { try lock.take() }

  /// Lets other programs replace it.
  public func leave() { lock.release() }

  /// Replaces the file by what is in the cache and may still be given. Other threads go on using the cache.
  ///
  /// - Parameter time: the present.
  /// - Throws: where it cannot be written, or another program does so; then the old file is still there.
  public func save(
    _ cache: MessageCache, _ meanings: CacheMeanings, at time: CacheTime
  ) throws(FileProblem) -> CacheSave {
    try lock.take()
    let replacement = try FileReplacement(of: path)
    var writer = try CacheWriter(meanings, at: time) { (octets) throws(FileProblem) in try replacement.append(octets) }
    var problem: FileProblem?
    cache.forEachRecord(now: time.boot) { record in
      do throws(FileProblem) { try writer.add(record) } catch { problem = error }
      return problem == nil
    }
    if let problem { throw problem }
    try writer.finish()
    try replacement.commit()
    return CacheSave(entries: writer.entries, octets: writer.octets)
  }

  /// Puts what is in the file, and may still be given, into the cache; all of the file is checked before. Other threads go
  /// on using the cache, and see the entries as they come.
  ///
  /// - Parameters:
  ///   - time: the present.
  ///   - isWanted: asked once in a while; false ends it.
  ///   - whenFresh: gets each entry that has been put in and is still fresh.
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

  /// - Returns: nil where there is no file.
  /// - Throws: `CacheDamage` where its beginning tells that it is of no use, `FileProblem` where it cannot be read.
  private func content() throws -> [UInt8]? {
    // Without waiting: for a FIFO nobody may ever come.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw FileProblem(ofLastCall: path)
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw FileProblem(ofLastCall: path) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw FileProblem(path, "it is not a regular file") }
    // What is not ours need not be read as a whole.
    try CacheImage.checkBeginning(read(file, min(status.st_size, CacheFormat.shortest)))
    guard status.st_size <= CacheFormat.longest else { throw CacheDamage.lengths }
    return try read(file, status.st_size)
  }

  /// The first octets of the file, fewer where it has become shorter.
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
