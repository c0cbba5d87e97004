// CompletionTests.swift -- what the program offers a shell that completes a command line.

import Foundation
import Testing

@Suite(.blocking) struct CompletionTests {
  /// As the shells hand over `--config`: bash makes `=` a word.
  @Test(arguments: [["--config", "FILE"], ["--config=FILE"], ["--config", "=", "FILE"]])
  func `--provider is completed by the names in the configuration`(words: [String]) throws {
    try withLab { lab in
      // A secret that cannot be read does not matter.
      let file = try lab.file(
        """
        [[provider]]
        name = "one"
        kind = "tencent"
        token_file = "/no/such/file"
        [[provider]]
        kind = "doh"
        """)
      let line =
        ["httpdnsd", "query"] + words.map { $0.replacingOccurrences(of: "FILE", with: file) } + ["--provider", ""]
      let call = ["---completion", "query", "--", "--provider", "\(line.count - 1)", "0"] + line
      let (ending, output, error) = try lab.run(call)
      #expect(ending == .exited(0), "\(error)")
      #expect(output.split(separator: "\n") == ["one", "doh"])
    }
  }
}
