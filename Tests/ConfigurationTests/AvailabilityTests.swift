// AvailabilityTests.swift -- a key whose feature does not exist yet accepts only its default.

import Configuration
import Testing

private let unavailable: [(section: String, key: String, standard: String, other: String)] = [
  ("[cache]", "redis", "\"\"", "\"redis://127.0.0.1:6379/0\"")
]

@Test(arguments: unavailable)
func `a key of a later version accepts only its default`(
  section: String, key: String, standard: String, other: String
) {
  #expect(mistakes("\(section)\n\(key) = \(standard)") == [])
  let found = mistakes("\(section)\n\(key) = \(other)")
  #expect(found.count == 1)
  #expect(found.first?.contains(".\(key): not supported in this version: ") == true)
  #expect(found.first?.hasSuffix("; remove the key") == true)
}
