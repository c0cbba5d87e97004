// Support.swift -- parses texts for the tests and returns configurations, mistakes and warnings.

import Configuration
import Files
import Glibc
import TestSupport
import Testing

/// The configuration of a text, or its mistakes.
func parse(_ text: String, environment: [String: String] = [:]) -> Result<Configuration.Loaded, Mistakes> {
  do throws(Mistakes) {
    return .success(
      try Configuration.parse(
        text: text, fileName: "test.toml", environment: { environment[$0] }, variables: Array(environment.keys)))
  } catch {
    return .failure(error)
  }
}

/// The configuration of a text without mistakes.
func configuration(_ text: String, environment: [String: String] = [:]) throws -> Configuration {
  try parse(text, environment: environment).get().configuration
}

/// The lines of all mistakes of a text; none where it is accepted.
func mistakes(_ text: String, environment: [String: String] = [:]) -> [String] {
  guard case .failure(let failure) = parse(text, environment: environment) else { return [] }
  return failure.mistakes.map(\.description)
}

/// The lines of all warnings of a text, whether it is accepted or not.
func warnings(_ text: String, environment: [String: String] = [:]) -> [String] {
  switch parse(text, environment: environment) {
  case .success(let loaded): loaded.warnings.map(\.description)
  case .failure(let failure): failure.warnings.map(\.description)
  }
}

/// The configuration of a file in the repository's Config folder.
func sample(_ name: String) throws -> Configuration.Loaded {
  try Configuration.load(path: samplePath(name), environment: { _ in nil })
}

/// The lines of all mistakes and warnings of a text.
func messages(_ text: String) -> [String] {
  switch parse(text) {
  case .success(let loaded): loaded.warnings.map(\.description)
  case .failure(let failure): failure.mistakes.map(\.description) + failure.warnings.map(\.description)
  }
}

/// Runs a body with a new folder that has one file of this content and mode; removes both afterwards.
func withFile(
  _ content: [UInt8], mode: mode_t = 0o600, _ body: (_ directory: String, _ path: String) throws -> Void
) throws {
  let folder = TemporaryFolder()
  try body(folder.path, folder.write(content, to: "secret", mode: mode))
  withExtendedLifetime(folder) {}
}

/// Runs a body with a new folder that has one file of this text and mode; removes both afterwards.
func withFile(
  _ content: String, mode: mode_t = 0o600, _ body: (_ directory: String, _ path: String) throws -> Void
) throws {
  try withFile(Array(content.utf8), mode: mode, body)
}

/// The text of a file in the repository's Config folder.
func sampleText(_ name: String) throws -> String { try repositoryText("Config/\(name)") }

func repositoryText(_ path: String) throws -> String {
  guard let file = fopen(repositoryPath(path), "r") else { throw SampleMissing() }
  defer { fclose(file) }
  var octets = [UInt8](repeating: 0, count: Configuration.maxFileSize)
  let count = fread(&octets, 1, octets.count, file)
  return String(decoding: octets[..<count], as: UTF8.self)
}

/// The documents that may show configurations, as paths in the repository.
func documentPaths() -> [String] {
  ["README.md", "README.zh-CN.md"] + repositoryFiles(in: "docs").filter { $0.hasSuffix(".md") }
}

/// The files of a folder of the repository, as paths in the repository.
func repositoryFiles(in path: String) -> [String] {
  let names = Folder.names(in: repositoryPath(path)) ?? []
  return names.filter { !$0.hasPrefix(".") }.map { "\(path)/\($0)" }.sorted()
}

struct SampleMissing: Error {}

private func samplePath(_ name: String) -> String { repositoryPath("Config/\(name)") }

func repositoryPath(_ path: String, from file: String = #filePath) -> String {
  file.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/") + "/\(path)"
}
