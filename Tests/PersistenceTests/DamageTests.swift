// DamageTests.swift -- a file that is cut, damaged, foreign, crafted, or no file at all: a reason, and never a crash.

import Glibc
import MessageCache
import Persistence
import TestSupport
import Testing

@Suite struct `A cache file that cannot be used` {
  private let folder = TemporaryFolder()
  private let sound: [UInt8]

  init() throws {
    let cache = MessageCache.empty()
    cache.fill()
    _ = try folder.file.save(cache, .usual, at: .at(1))
    sound = try #require(folder.read())
  }

  private func load() -> (load: CacheLoad, cache: MessageCache) {
    let cache = MessageCache.empty(entries: 1_000)
    return (folder.file.load(into: cache, .usual, at: .at(2)), cache)
  }

  @Test func `a cache file cut to any length is set aside`() {
    for length in 0..<sound.count {
      folder.write(Array(sound[..<length]))
      let (load, cache) = load()
      guard case .setAside(let reason) = load else {
        Issue.record("cut to \(length): \(load)")
        continue
      }
      #expect(reason.hasPrefix("\(folder.path)/cache is now \(folder.path)/cache.damaged: it"))
      #expect(cache.usage.entries == 0)
      #expect(folder.names == ["cache.damaged"])
      #expect(folder.read("cache.damaged")?.count == length)
    }
  }

  @Test func `a cache file with any changed octet is set aside`() {
    for place in sound.indices {
      var octets = sound
      octets[place] ^= 1 << UInt8(place % 8)
      folder.write(octets)
      guard case (.setAside, let cache) = load() else {
        Issue.record("octet \(place)")
        continue
      }
      #expect(cache.usage.entries == 0)
    }
  }

  @Test func `each damage is reported with its reason`() {
    var future = sound
    future[16] = 2
    for (octets, reason) in [
      (Array("; a zone file\n$ORIGIN example.com.\n".utf8), "it is not a cache file"),
      (future, "its version is 2, this program knows 1"),
      (sound + [0], "its checksum does not fit: it is damaged or cut off"),
      ([], "it is cut off"),
      (checksummed(Array(sound[..<30])), "it is cut off"),
    ] {
      folder.write(octets)
      #expect(load().load == .setAside("\(folder.path)/cache is now \(folder.path)/cache.damaged: \(reason)"))
    }
  }

  @Test func `a new cache file replaces one that was set aside`() throws {
    folder.write([1, 2, 3])
    _ = load()
    #expect(load().load == .nothing)
    let cache = MessageCache.empty()
    cache.fill()
    _ = try folder.file.save(cache, .usual, at: .at(1))
    #expect(load().load == kept(5))
    #expect(folder.names == ["cache", "cache.damaged"])
  }

  @Test func `a folder, FIFO or device in place of the cache file is reported and not changed`() throws {
    unlink("\(folder.path)/cache")
    for make in [{ mkdir($0, 0o700) }, { mkfifo($0, 0o600) }, { symlink("/dev/null", $0) }] {
      #expect(make("\(folder.path)/cache") == 0)
      #expect(load().load == .unreadable("\(folder.path)/cache: it is not a regular file"))
      #expect(folder.names == ["cache"])
      if unlink("\(folder.path)/cache") != 0 { rmdir("\(folder.path)/cache") }
    }
  }

  @Test func `a cache file without permission to read is reported`() {
    guard geteuid() != 0 else {
      // Root may read everything: a path through a file fails for it too.
      let file = CacheFile(path: "\(folder.path)/cache/below")
      let load = file.load(into: .empty(), .usual, at: .at(2))
      #expect(load == .unreadable("\(file.path): Not a directory (user 0)"))
      return
    }
    chmod("\(folder.path)/cache", 0)
    #expect(load().load == .unreadable("\(folder.path)/cache: Permission denied (user \(geteuid()))"))
  }

  @Test func `a damaged cache file with a valid checksum does no harm`() throws {
    var random = SeededGenerator(seed: testSeed)
    let content = Array(sound.dropLast(32))
    var (loaded, refused, answers) = (0, 0, 0)
    for _ in 0..<20_000 {
      let octets = checksummed(mutated(content, &random))
      do throws(CacheDamage) {
        let image = try CacheImage(octets)
        let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
        let counts = image.restore(into: cache, .usual, at: .at(2))
        #expect(counts.loaded == cache.usage.entries)
        #expect(counts.loaded + counts.dropped + counts.withoutRoom + counts.unsound == image.entries)
        answers += cache.useAll(now: 3 * second)
        loaded += 1
      } catch { refused += 1 }
    }
    #expect(loaded > 5_000 && refused > 1_000 && answers > 10_000, "\(loaded) \(refused) \(answers)")
  }

  private func checksummed(_ content: [UInt8]) -> [UInt8] { content + CacheImage.checksum(of: content[...]) }

  /// A few octets changed, mostly to what a length should not be; sometimes a part left out or doubled.
  private func mutated(_ content: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    var octets = content
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let place = Int.random(in: octets.indices, using: &random)
      switch Int.random(in: 0..<12, using: &random) {
      case 0:
        octets.removeSubrange(place..<min(octets.count, place + Int.random(in: 1...100, using: &random)))
      case 1:
        octets.insert(contentsOf: octets[place...].prefix(Int.random(in: 1...100, using: &random)), at: place)
      case 2..<6: octets[place] = [0, 1, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xFF].randomElement(using: &random)!
      case 6..<8:
        // Whole numbers, as large as they get.
        for index in place..<min(octets.count, place + 8) { octets[index] = 0xFF }
      default: octets[place] = UInt8.random(in: 0...255, using: &random)
      }
      if octets.isEmpty { return octets }
    }
    return octets
  }
}
