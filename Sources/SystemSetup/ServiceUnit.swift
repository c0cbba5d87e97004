// ServiceUnit.swift -- what the files of a machine tell of the daemon's service.

/// httpdnsd.service on a machine, which need not run.
public struct ServiceUnit {
  private let root: Root

  /// Where units are, those that count first.
  private static let folders = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"].map { "\($0)/systemd/system" }
  private static let usualPrograms = ["/usr/bin/httpdnsd", "/usr/local/bin/httpdnsd"]

  /// The one on the machine with this root.
  public init(_ root: Root) { self.root = root }

  /// Whether there is a unit.
  var isPresent: Bool { ServiceUnit.folders.contains { root.exists("\($0)/\(Place.unit)") } }

  /// Whether something that starts at boot wants it.
  var isEnabled: Bool {
    ServiceUnit.folders.contains { folder in
      root.names(in: folder).contains { name in
        (name.hasSuffix(".wants") || name.hasSuffix(".requires"))
          && root.names(in: "\(folder)/\(name)").contains(Place.unit)
      }
    }
  }

  /// The program that it starts, inside the root; nil where there is no unit, or one that starts something else.
  public var program: String? {
    guard let text = ServiceUnit.folders.lazy.compactMap({ root.text(of: "\($0)/\(Place.unit)") }).first else {
      return nil
    }
    let commands = text.split(separator: "\n").filter { $0.hasPrefix("ExecStart=") }.map { $0.drop { $0 != "/" } }
    guard let path = commands.last(where: { !$0.isEmpty })?.prefix(while: { !$0.isWhitespace }) else { return nil }
    return path.hasSuffix("/httpdnsd") ? String(path) : nil
  }

  /// The program that is installed, whatever the unit says: where the package and `make install` put it.
  public var installedProgram: String? { ServiceUnit.usualPrograms.first { root.exists($0) } }
}
