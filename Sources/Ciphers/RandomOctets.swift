// RandomOctets.swift -- octets that nobody can foresee, for nonces and initialisation vectors.

import CCrypto
import Glibc
import Synchronization

/// Octets from libcrypto's random generator, seeded by the kernel.
///
/// The generator takes as long for one octet as for hundreds, so that they are fetched in advance: no key may be made of
/// what has waited in memory.
public enum RandomOctets {
  private static let store = Mutex(RandomStore())

  /// That many octets. None is given twice.
  ///
  /// - Precondition: the generator works; a predictable initialisation vector would be worse than no program.
  /// - Complexity: O(*n*) in the count.
  public static func generate(count: Int) -> [UInt8] {
    store.withLock { store in
      var octets = [UInt8](repeating: 0, count: count)
      octets.withUnsafeMutableBytes { store.take(into: $0) }
      return octets
    }
  }
}

/// Octets that wait to be given.
private struct RandomStore: ~Copyable {
  /// Octets that are fetched at once.
  static let size = 512

  /// How many octets wait, and behind that number those octets. In a forked child the kernel makes all of it zero, so
  /// that the child finds none waiting and never gives its parent's. Nil where the kernel cannot: then none ever wait.
  private let page: UnsafeMutableRawPointer?

  init() {
    let length = Int(getpagesize())
    let page = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    self.page = page != MAP_FAILED && madvise(page, length, MADV_WIPEONFORK) == 0 ? page : nil
  }

  /// Fills a buffer with octets that wait, or with new ones where it is larger than all of them.
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
