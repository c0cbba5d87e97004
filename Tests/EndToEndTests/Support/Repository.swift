// Repository.swift -- the files that the tests were built from.

/// The files of this repository, for a file of Tests/EndToEndTests.
enum Repository {
  static func path(_ name: String, from file: String = #filePath) -> String {
    file.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/") + "/\(name)"
  }
}
