// MessageBuilder.swift -- composes random sound messages, and remembers where their labels and lengths are.

/// A message under construction.
struct MessageBuilder {
  private(set) var octets = [UInt8](repeating: 0, count: 12)
  /// Where labels and pointers begin.
  private(set) var labels: [Int] = []
  /// Where the low octet of each RDLENGTH, option length and character-string length is.
  private(set) var lengths: [Int] = []

  mutating func query(_ random: inout SeededGenerator) {
    header(flags: 0x0100 | UInt16(random.next() & 0x0030), &random)
    question(&random)
    guard !random.oneIn(3) else { return }
    opt(&random)
    octets[11] = 1
  }

  mutating func response(_ random: inout SeededGenerator) {
    let rcode: UInt16 = [0, 0, 0, 2, 3].randomElement(using: &random)!
    header(flags: 0x8180 | rcode | UInt16(random.next() & 0x0630), &random)
    question(&random)
    octets[7] = UInt8.random(in: 0...3, using: &random)
    octets[9] = UInt8.random(in: 0...1, using: &random)
    for _ in 0..<octets[7] { record(types.randomElement(using: &random)!, &random) }
    for _ in 0..<octets[9] { record(random.oneIn(2) ? 6 : 2, &random) }
    if random.oneIn(3) {
      record(random.oneIn(2) ? 1 : 28, &random)
      octets[11] += 1
    }
    if random.oneIn(2) {
      opt(&random)
      octets[11] += 1
    }
  }

  private mutating func header(flags: UInt16, _ random: inout SeededGenerator) {
    octets.replaceSubrange(0..<2, with: random.octets(2))
    octets[2] = UInt8(flags >> 8)
    octets[3] = UInt8(flags & 0xFF)
    octets[5] = 1
  }

  private mutating func question(_ random: inout SeededGenerator) {
    name(&random)
    short(types.randomElement(using: &random)!)
    short(random.oneIn(40) ? 3 : 1)
  }

  private mutating func record(_ type: UInt16, _ random: inout SeededGenerator) {
    name(&random)
    short(type)
    short(random.oneIn(40) ? [3, 254, 255].randomElement(using: &random)! : 1)
    octets += random.oneIn(20) ? random.octets(4) : [0, 0] + random.octets(2)
    let fields = fields(of: type, &random)
    counted { builder in
      for field in fields { builder.write(field, &random) }
    }
  }

  private mutating func opt(_ random: inout SeededGenerator) {
    octets += random.oneIn(30) ? [1, 97, 0] : [0]
    short(41)
    short([512, 1232, 4096].randomElement(using: &random)!)
    octets += [random.oneIn(20) ? 1 : 0, random.oneIn(20) ? 1 : 0, random.oneIn(2) ? 0x80 : 0, 0]
    counted { builder in
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        builder.short([3, 8, 10, 12, 15, 65_001].randomElement(using: &random)!)
        builder.counted { $0.octets += random.octets(Int.random(in: 0...12, using: &random)) }
      }
    }
  }

  /// A length of two octets, and what it counts.
  private mutating func counted(_ body: (inout MessageBuilder) -> Void) {
    let start = octets.count
    lengths.append(start + 1)
    short(0)
    body(&self)
    let length = octets.count - start - 2
    octets[start] = UInt8(truncatingIfNeeded: length >> 8)
    octets[start + 1] = UInt8(truncatingIfNeeded: length)
  }

  private mutating func short(_ value: UInt16) { octets += [UInt8(value >> 8), UInt8(value & 0xFF)] }

  /// A name: new labels, then the root or a pointer to a label that is there already.
  private mutating func name(_ random: inout SeededGenerator) {
    let earlier = labels.filter { $0 < 0x4000 }
    let count = random.oneIn(200) ? 130 : Int.random(in: 0...3, using: &random)
    for _ in 0..<count {
      let length = random.oneIn(40) ? 63 : Int.random(in: 1...4, using: &random)
      labels.append(octets.count)
      octets.append(UInt8(length))
      octets += random.oneIn(10) ? random.octets(length) : random.octets(length).map { 97 + $0 % 26 }
    }
    if let target = earlier.randomElement(using: &random), !random.oneIn(4) {
      labels.append(octets.count)
      short(0xC000 | UInt16(target))
    } else {
      octets.append(0)
    }
  }

  private enum Field { case octets(Int), name, string, parameters, upTo(Int), tag }

  private func fields(of type: UInt16, _ random: inout SeededGenerator) -> [Field] {
    switch type {
    case 1: [.octets(4)]
    case 28: [.octets(16)]
    case 2, 5, 7, 12, 39: [.name]
    case 6: [.name, .name, .octets(20)]
    case 13: [.string, .string]
    case 14, 17: [.name, .name]
    case 15, 18: [.octets(2), .name]
    case 16: Array(repeating: .string, count: Int.random(in: 1...3, using: &random))
    case 26: [.octets(2), .name, .name]
    case 33: [.octets(6), .name]
    case 35: [.octets(4), .string, .string, .string, .name]
    case 43: [.octets(4), .upTo(40)]
    case 46: [.octets(18), .name, .upTo(40)]
    case 47: [.name, .upTo(10)]
    case 48: [.octets(4), .upTo(40)]
    case 44: [.octets(2), .upTo(20)]
    case 52: [.octets(3), .upTo(20)]
    case 64, 65: [.octets(2), .name, .parameters]
    case 257: [.octets(1), .tag, .upTo(30)]
    default: [.upTo(20)]
    }
  }

  private mutating func write(_ field: Field, _ random: inout SeededGenerator) {
    switch field {
    case .octets(let count): octets += random.octets(count)
    case .upTo(let limit): octets += random.octets(Int.random(in: 0...limit, using: &random))
    case .name: name(&random)
    case .string:
      let length = random.oneIn(20) ? 255 : Int.random(in: 0...12, using: &random)
      lengths.append(octets.count)
      octets.append(UInt8(length))
      octets += random.octets(length)
    case .tag:
      lengths.append(octets.count)
      octets += [5] + Array("issue".utf8)
    case .parameters:
      var key: UInt16 = 0
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        short(key)
        counted { $0.octets += random.octets(Int.random(in: 0...8, using: &random)) }
        key += UInt16.random(in: 1...3, using: &random)
      }
    }
  }

  private var types: [UInt16] {
    [
      1, 1, 28, 2, 5, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 26, 29, 33, 35, 39, 43, 44, 46, 47, 48, 52, 64, 65, 65, 99,
      250, 257, 65_280,
    ]
  }
}
