// MessageMutator.swift -- seeded DNS messages, sound ones and damaged ones, without any code of the product.

/// Makes messages that are mostly sound, and damages them where it hurts: at counts, lengths, labels and pointers.
public struct MessageMutator {
  /// The random numbers; the same seed makes the same messages.
  public var random: SeededGenerator

  /// A mutator of that seed.
  public init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  /// A query as stub resolvers send it: one question, often an OPT record.
  public mutating func query() -> [UInt8] { build { $0.query(&$1) } }

  /// A response as upstream servers send it.
  public mutating func response() -> [UInt8] { build { $0.response(&$1) } }

  /// A query with up to four damages; one in four has none.
  public mutating func damagedQuery() -> [UInt8] {
    damage { $0.query(&$1) }
  }

  /// A response with up to four damages; one in four has none.
  public mutating func damagedResponse() -> [UInt8] {
    damage { $0.response(&$1) }
  }

  private mutating func build(_ body: (inout MessageBuilder, inout SeededGenerator) -> Void) -> [UInt8] {
    var builder = MessageBuilder()
    body(&builder, &random)
    return builder.octets
  }

  private mutating func damage(_ body: (inout MessageBuilder, inout SeededGenerator) -> Void) -> [UInt8] {
    var builder = MessageBuilder()
    body(&builder, &random)
    var octets = builder.octets
    guard !random.oneIn(4) else { return octets }
    for _ in 0..<Int.random(in: 1...4, using: &random) { damageOnce(&octets, builder) }
    return octets
  }

  private mutating func damageOnce(_ octets: inout [UInt8], _ builder: MessageBuilder) {
    guard !octets.isEmpty else { return }
    let anywhere = Int.random(in: 0..<octets.count, using: &random)
    switch Int.random(in: 0..<12, using: &random) {
    case 0: octets[anywhere] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: octets[anywhere] = [0, 1, 0x3F, 0x40, 0x80, 0xBF, 0xC0, 0xFF].randomElement(using: &random)!
    case 2: octets.removeLast(Int.random(in: 1...octets.count, using: &random))
    case 3: octets.removeSubrange(anywhere..<min(octets.count, anywhere + Int.random(in: 1...4, using: &random)))
    case 4: octets.insert(contentsOf: random.octets(Int.random(in: 1...4, using: &random)), at: anywhere)
    case 5: octets += random.octets(Int.random(in: 1...20, using: &random))
    case 6: nudge(&octets, at: [5, 7, 9, 11].randomElement(using: &random)!)
    case 7, 8: nudge(&octets, at: builder.lengths.randomElement(using: &random) ?? anywhere)
    case 9: nudge(&octets, at: builder.labels.randomElement(using: &random) ?? anywhere)
    case 10: point(&octets, from: builder.labels.randomElement(using: &random) ?? anywhere, builder)
    default: point(&octets, from: anywhere, builder)
    }
  }

  /// Makes a count, a length or a label a little longer or shorter.
  private mutating func nudge(_ octets: inout [UInt8], at offset: Int) {
    guard octets.indices.contains(offset) else { return }
    octets[offset] &+= [1, 2, 255, 254, 4, 16].randomElement(using: &random)!
  }

  /// Puts a compression pointer somewhere: to a name, to itself, forwards, into the header.
  private mutating func point(_ octets: inout [UInt8], from offset: Int, _ builder: MessageBuilder) {
    guard offset + 1 < octets.count else { return }
    let targets = [
      offset, offset + 2, Int.random(in: 0..<12, using: &random), Int.random(in: 0...offset, using: &random),
    ]
    let target = (builder.labels + targets).randomElement(using: &random)!
    octets[offset] = 0xC0 | UInt8(truncatingIfNeeded: target >> 8) & 0x3F
    octets[offset + 1] = UInt8(truncatingIfNeeded: target)
  }
}
