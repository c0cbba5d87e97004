// ServiceUnit.swift -- reads the systemd unit of the daemon from a machine's files.

/// httpdnsd.service on a machine, which may be offline. Each property reads the files again.
public struct ServiceUnit {
  private let root: Root

  /// The unit folders, highest precedence first.
  static let folders = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"].map { "\($0)/systemd/system" }
  private static let usualPrograms = ["/usr/bin/httpdnsd", "/usr/local/bin/httpdnsd"]

  public init(_ root: Root) { self.root = root }

  /// Whether a folder of systemd contains the unit.
  var isPresent: Bool { ServiceUnit.folders.contains { root.exists("\($0)/\(SetupPaths.unit)") } }

  /// Whether another unit wants or requires it, such as one that starts at boot.
  var isEnabled: Bool {
    ServiceUnit.folders.contains { folder in
      root.names(in: folder).contains { name in
        (name.hasSuffix(".wants") || name.hasSuffix(".requires"))
          && root.names(in: "\(folder)/\(name)").contains(SetupPaths.unit)
      }
    }
  }

  /// The program that the unit starts, as a path inside the root; nil without a unit, or if it starts something else.
  public var program: String? {
    guard let path = command(of: text)?.first else { return nil }
    return path.hasSuffix("/httpdnsd") ? path : nil
  }

  /// The user that the unit sets; nil without a unit, or if the user is dynamic.
  public var user: String? { settings("User", in: textWithDropIns).last { !$0.isEmpty } }

  /// The configuration file that the unit passes with `--config`; nil if it passes none.
  public var configuration: String? {
    guard let words = command(of: textWithDropIns), let option = words.firstIndex(of: "--config"),
      option + 1 < words.count
    else { return nil }
    return words[option + 1]
  }

  /// Whether a service of this unit has a capability (`CAP_NET_ADMIN`): root has those of the bounding set, another user
  /// has those of them that are ambient too.
  public func grants(_ capability: Substring, toRoot isRoot: Bool) -> Bool {
    let isBounded = names(capability, in: "CapabilityBoundingSet") ?? true
    return isBounded && (isRoot || names(capability, in: "AmbientCapabilities") ?? false)
  }

  /// Whether a list of capabilities has this one; nil if the unit does not set it. Empty, it takes back what stands before.
  private func names(_ capability: Substring, in setting: String) -> Bool? {
    settings(setting, in: textWithDropIns).reduce(nil) { found, value in
      !value.isEmpty && (found == true || value.split(whereSeparator: \.isWhitespace).contains(capability))
    }
  }

  /// The installed program, independent of the unit: where the package or `make install` puts it.
  public var installedProgram: String? { ServiceUnit.usualPrograms.first { root.exists($0) } }

  /// The text of the unit; nil if it does not exist.
  private var text: String? { ServiceUnit.folders.lazy.compactMap { root.text(of: "\($0)/\(SetupPaths.unit)") }.first }

  /// The unit followed by its drop-ins, sorted by name, each from the folder of highest precedence.
  private var textWithDropIns: String? {
    guard var text else { return nil }
    let folders = ServiceUnit.folders.map { "\($0)/\(SetupPaths.unit).d" }
    for path in root.dropIns(in: folders) { text += "\n" + (root.text(of: path) ?? "") }
    return text
  }

  /// Returns the words of the last ExecStart= that is not empty.
  private func command(of text: String?) -> [String]? {
    settings("ExecStart", in: text).map { $0.drop { $0 != "/" } }.last { !$0.isEmpty }?
      .split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// Returns the values of a setting in order.
  private func settings(_ name: String, in text: String?) -> [String] {
    (text ?? "").split(separator: "\n").filter { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.count + 1)) }
  }
}
