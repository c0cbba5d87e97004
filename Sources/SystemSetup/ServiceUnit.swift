// ServiceUnit.swift -- what the files of a machine say about the daemon's service.

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
    guard let path = command(of: text)?.first else { return nil }
    return path.hasSuffix("/httpdnsd") ? path : nil
  }

  /// The user that it names; nil where there is no unit, or one whose user exists only while the service runs.
  public var user: String? { settings("User", in: textWithDropIns).last { !$0.isEmpty } }

  /// The configuration file that it names to the program.
  public var configuration: String? {
    guard let words = command(of: textWithDropIns), let option = words.firstIndex(of: "--config"),
      option + 1 < words.count
    else { return nil }
    return words[option + 1]
  }

  /// The program that is installed, whatever the unit says: where the package and `make install` put it.
  public var installedProgram: String? { ServiceUnit.usualPrograms.first { root.exists($0) } }

  /// The unit itself; nil where there is none.
  private var text: String? {
    ServiceUnit.folders.lazy.compactMap { root.text(of: "\($0)/\(Place.unit)") }.first
  }

  /// The unit with its drop-ins behind it, by their names, each from the folder that counts first.
  private var textWithDropIns: String? {
    guard var text else { return nil }
    var dropIns: [String: String] = [:]
    for folder in ServiceUnit.folders.map({ "\($0)/\(Place.unit).d" }) {
      for name in root.names(in: folder) where name.hasSuffix(".conf") && dropIns[name] == nil {
        dropIns[name] = "\(folder)/\(name)"
      }
    }
    for (_, path) in dropIns.sorted(by: { $0.key < $1.key }) { text += "\n" + (root.text(of: path) ?? "") }
    return text
  }

  /// The words of the last command that starts something.
  private func command(of text: String?) -> [String]? {
    settings("ExecStart", in: text).map { $0.drop { $0 != "/" } }.last { !$0.isEmpty }?
      .split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// The values of a setting, in their order.
  private func settings(_ name: String, in text: String?) -> [String] {
    (text ?? "").split(separator: "\n").filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
  }
}
