// ProviderCompletion.swift -- completes `--provider` with the names of the configured providers.

import ArgumentParser
import Configuration

extension CompletionKind {
  /// The providers in the configuration file of the command line, the environment or the default path. Sends nothing.
  static var configuredProviders: CompletionKind {
    .custom { words, _, _ in
      Configuration.providerNames(path: Configuration.path(given: ProviderCompletion.file(of: words)))
    }
  }
}

private enum ProviderCompletion {
  /// The value of `--config`: the next word, or the text after `=`, which bash passes as a word of its own.
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
