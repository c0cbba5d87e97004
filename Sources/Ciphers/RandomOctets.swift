// RandomOctets.swift -- unpredictable octets for nonces and initialisation vectors.

import CCrypto
import Glibc
import Synchronization

/// Octets from libcrypto's random generator, seeded by the kernel. Any thread.
///
/// The generator takes as long for one octet as for hundreds, so octets are fetched in advance and wait in memory: do not
/// use them for keys.
public enum RandomOctets {
  private static let store = Mutex(RandomStore())

  /// Returns `count` octets. None is returned twice.
  ///
  /// - Precondition: the generator works; a predictable initialisation vector would be worse than a crash.
  /// - Complexity: O(*n*) in the count.
  public static func generate(count: Int) -> [UInt8] {
    store.withLock { store in
      var octets = [UInt8](repeating: 0, count: count)
      octets.withUnsafeMutableBytes { store.take(into: $0) }
      return octets
    }
  }
}

/// Octets that were fetched in advance.
private struct RandomStore: ~Copyable {
  /// The number of octets fetched at once.
  static let size = 512

  /// The number of waiting octets, followed by the octets. The kernel zeroes the page in a forked child, so that the child
  /// never returns its parent's octets. Nil if the kernel cannot do that; then no octets are fetched in advance.
  private let page: UnsafeMutableRawPointer?

  init() {
    let length = Int(getpagesize())
    let page = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    self.page = page != MAP_FAILED && madvise(page, length, MADV_WIPEONFORK) == 0 ? page : nil
  }

  /// Fills a buffer from the waiting octets, or from the generator if the buffer is larger than the store.
  mutating func take(into output: UnsafeMutableRawBufferPointer) {
    guard let page, output.count <= RandomStore.size else { return RandomStore.generate(output) }
    let octets = UnsafeMutableRawBufferPointer(start: page + MemoryLayout<Int>.size, count: RandomStore.size)
    var waiting = page.load(as: Int.self)
    if waiting < output.count {
      RandomStore.generate(octets)
      waiting = octets.count
    }
    waiting -= output.count
    let taken = UnsafeMutableRawBufferPointer(rebasing: octets[waiting..<(waiting + output.count)])
    output.copyMemory(from: UnsafeRawBufferPointer(taken))
    OPENSSL_cleanse(taken.baseAddress, taken.count)
    page.storeBytes(of: waiting, as: Int.self)
  }

  private static func generate(_ output: UnsafeMutableRawBufferPointer) {
    let octets = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    precondition(output.isEmpty || RAND_bytes(octets, Int32(output.count)) == 1, "libcrypto has no random octets")
  }
}
