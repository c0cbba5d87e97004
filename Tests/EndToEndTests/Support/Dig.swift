// Dig.swift -- asks with dig (BIND) and kdig (Knot DNS), which share no code with us or with each other.

import Foundation

/// The programs that ask.
enum Dig: String, CaseIterable {
  case dig, kdig

  /// What a program printed.
  struct Answer {
    let text: String

    /// The response code's mnemonic.
    var status: String? { text.firstMatch(of: /status: (\w+)/).map { String($0.1) } }
    /// The flags' mnemonics.
    var flags: [String] {
      text.firstMatch(of: /(?i);; flags: ([a-z ]*)/).map { $0.1.split(separator: " ").map(String.init) } ?? []
    }
    /// The records of a section, their fields separated by one space each.
    func section(_ name: String) -> [String] {
      guard let start = text.range(of: ";; \(name) SECTION:\n") else { return [] }
      let lines = text[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
      return lines.prefix { !$0.isEmpty && !$0.hasPrefix(";;") }.map { line in
        line.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      }
    }
    var answers: [String] { section("ANSWER") }
    var authorities: [String] { section("AUTHORITY") }
    /// The data of the answer section's records, without owner, TTL, class and type.
    var data: [String] { answers.map { $0.split(separator: " ").dropFirst(4).joined(separator: " ") } }
  }

  func ask(_ server: Address, _ arguments: String...) throws -> Answer {
    var command = [rawValue]
    // The options that a user's own file would set.
    if self == .dig { command.append("-r") }
    command += ["@\(server.host)", "-p", "\(server.port)", self == .dig ? "+tries=1" : "+retry=0"]
    let (ending, output, error) = try ChildProcess.run(command + ["+time=8"] + arguments)
    guard ending == .exited(0) else { throw Failure("\(rawValue): \(ending) \(output) \(error)") }
    return Answer(text: output)
  }
}
