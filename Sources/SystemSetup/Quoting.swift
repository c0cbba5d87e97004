// Quoting.swift -- quotes text without control characters for the scripts and units that setup writes.

enum Quoting {
  /// One word of a shell script.
  static func shell(_ text: String) -> String { "'\(escaped(text, ["'": "'\\''"]))'" }

  /// One argument of a command in a unit: systemd expands `%` and `$` in it.
  static func unit(_ text: String) -> String {
    "\"\(escaped(text, ["\\": "\\\\", "\"": "\\\"", "%": "%%", "$": "$$"]))\""
  }

  private static func escaped(_ text: String, _ escapes: [Unicode.Scalar: String]) -> String {
    text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
  }
}
