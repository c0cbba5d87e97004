// ListedNameTests.swift -- which names a list may have, at the limits of DNS.

import DNSWire
import Testing

@testable import Lists

@Suite struct `A name of a list` {
  private static func labels(_ lengths: Int...) -> String {
    lengths.map { String(repeating: "x", count: $0) }.joined(separator: ".")
  }

  @Test(arguments: [
    labels(63), labels(63, 63, 63, 61), labels(61, 63, 63, 63), labels(63, 63, 63, 61) + ".",
    String(repeating: "x.", count: 126) + "x", String(repeating: "x.", count: 127), labels(1), "x.y",
  ])
  func `a name has up to 127 labels, each of up to 63 octets, and 253 octets with its dots`(name: String) {
    for line in [
      name, "||\(name.hasSuffix(".") ? String(name.dropLast()) : name)^", "server=/\(name)/", "full:\(name)",
    ] {
      let reading = Reading(line)
      #expect(reading.names.map(\.text) == [name.hasSuffix(".") ? String(name.dropLast()) : name])
      #expect(reading.leftOut == LeftOut())
    }
  }

  @Test(arguments: [
    labels(64), labels(1, 64), labels(64, 1), labels(63, 63, 63, 62), labels(62, 63, 63, 63),
    labels(63, 63, 63, 62) + ".",
    labels(63, 63, 63, 61, 1), String(repeating: "x.", count: 127) + "x", String(repeating: "x.", count: 128),
    labels(300),
    labels(0), labels(0, 0, 1), labels(1, 0, 1), labels(1, 0, 0),
  ])
  func `a longer name, a longer label and an empty one are left out`(name: String) {
    for line in ["full:\(name)", "0.0.0.0 \(name)", "server=/\(name)/", "||\(name)^", "DOMAIN,\(name)"] {
      let reading = Reading(line)
      #expect(reading.names == [])
      #expect(reading.reason == .noName || line == "0.0.0.0 ", "\(line)")
    }
  }

  @Test func `every octet that may not stand in a name is refused, and letters come in lower case`() {
    let special = Set(" \t\r\n.#".utf8)
    for octet in UInt8(1)...255 where !special.contains(octet) {
      let reading = Reading(Array("domain:a".utf8) + [octet] + Array("b.example\nc.example".utf8))
      let isPart =
        octet < 0x80 && (Character(UnicodeScalar(octet)).isLetter || Character(UnicodeScalar(octet)).isNumber)
      if isPart || octet == UInt8(ascii: "-") || octet == UInt8(ascii: "_") {
        let letter = String(UnicodeScalar(octet)).lowercased()
        #expect(reading.names.map(\.text) == ["a\(letter)b.example", "c.example"], "\(octet)")
      } else {
        #expect(reading.names.map(\.text) == ["c.example"] && reading.leftOut.total == 1, "\(octet)")
      }
    }
  }

  @Test func `the hash of a name is that of its labels, and other labels have other hashes`() {
    let key = ListKey()
    var seen: [UInt64: String] = [:]
    let labels = [
      "a", "b", "ab", "ba", "aaaaaaa", "aaaaaaaa", "aaaaaaab", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaab", "com",
    ]
    var names = labels
    for first in labels { names += labels.map { "\(first).\($0)" } + labels.map { "\(first).a.\($0)" } }
    for name in Set(names) {
      var reader = ListReader()
      var hashes: [UInt64] = []
      for line in [name, name.uppercased() + ".", "||\(name)^"] {
        Array("\(line)\n".utf8).withUnsafeBytes { text in
          reader.read(text) { name, _ in
            hashes.append(key.hash(name))
            return nil
          }
        }
      }
      #expect(Set(hashes).count == 1 && hashes.count == 3)
      #expect(seen.updateValue(name, forKey: hashes[0]) == nil, "\(name)")
    }
  }
}
