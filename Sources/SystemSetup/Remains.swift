// Remains.swift -- finds what setup has made if its journal, and with it the state before, is missing.
//
// `apply` writes the journal before anything else and `undo` removes it last: it is missing only if it was deleted.

/// The paths of files that say that setup has made them.
public struct Remains: Hashable, Sendable, CustomStringConvertible {
  /// The paths, absolute inside the root; at least one.
  public let paths: [String]

  /// What happened, and what helps.
  public var description: String {
    """
    \(SetupPaths.journal) is missing, so setup does not know the state before; `httpdnsd setup undo` removes what setup \
    has made: \(paths.joined(separator: ", "))
    """
  }
}

extension Installation {
  /// Finds what is left of a setup without a journal; nil if there is a journal, or nothing is left.
  public func remains() throws(SetupError) -> Remains? {
    guard try root.state(of: SetupPaths.journal) == .absent else { return nil }
    var paths = made
    let text = root.text(of: SetupPaths.resolver) ?? ""
    if ResolverText.withoutOurs(text) != nil || root.destination(of: SetupPaths.resolver) == SetupPaths.following {
      paths.append(SetupPaths.resolver)
    }
    return paths.isEmpty ? nil : Remains(paths: paths)
  }

  /// The files that say that setup has made them, each once: folders may be links to each other, such as /lib.
  var made: [String] {
    SetupPaths.made.reduce(into: []) { paths, path in
      guard root.text(of: path)?.contains(SetupPaths.mark) == true,
        !paths.contains(where: { root.real($0) == root.real(path) })
      else { return }
      paths.append(path)
    }
  }
}
