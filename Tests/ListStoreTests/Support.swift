// Support.swift -- what several tests of lists need.

import Testing

@testable import ListStore

/// The lines of a text.
func lines(of text: ListText) -> [String] {
  var pieces = text.pieces()
  var octets: [UInt8] = []
  while let piece = try? pieces.next() { octets += piece }
  return String(decoding: octets, as: UTF8.self).split(separator: "\n").map(String.init)
}

let url = "https://lists.example/cn.txt"

extension ListSource {
  static func url(
    _ text: String = ListStoreTests.url, name: String? = "office", interval: Duration = .seconds(86_400),
    maxSize: Int = 1 << 20
  ) -> ListSource {
    ListSource(.url(text), name: name, interval: interval, maxSize: maxSize)
  }
}
