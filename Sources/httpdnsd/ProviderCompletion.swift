// ProviderCompletion.swift -- what a shell offers behind `--provider`: the names of the configuration's providers.

import ArgumentParser
import Configuration

extension CompletionKind {
  /// The providers of the configuration that the command line, the environment or the usual place has. Sends nothing.
  static var configuredProviders: CompletionKind {
    .custom { words, _, _ in
      Configuration.providerNames(path: Configuration.path(given: ProviderCompletion.file(of: words)))
    }
  }
}

/// The command line as a shell hands it over.
private enum ProviderCompletion {
  /// What `--config` says: in a word of its own, or behind `=`, which bash makes a word too.
  static func file(of words: [String]) -> String? {
    let option = "--config"
    for (index, word) in words.enumerated() {
      if word.hasPrefix("\(option)=") { return String(word.dropFirst(option.count + 1)) }
      guard word == option else { continue }
      return words[(index + 1)...].first { $0 != "=" }
    }
    return nil
  }
}
