// Settings.swift -- configurations as text.

/// The parts of a configuration that tests differ in.
struct Settings {
  /// The `[[provider]]` tables, as text.
  var providers: [String]
  /// The servers of LocalDNS; none unless a test says so.
  var localServers: [Address] = []
  /// `listen.addresses`, and more keys of `[listen]`.
  var addresses = ["127.0.0.1:0"]
  var listen = ""
  /// The limits of misses: off, since the names of the simulator's zones are of few domains.
  var shares = "misses_per_client = 0\nmisses_per_domain = 0"
  /// More keys of `[localdns]`.
  var local = ""
  /// The keys of `[control]`: no socket unless a test says so.
  var control = "socket = \"\""
  /// Whole tables.
  var more = ""

  init(_ providers: String...) { self.providers = providers }

  /// Opens a control socket in the test's folder.
  ///
  /// - Returns: its path.
  @discardableResult
  mutating func openControl(in lab: Lab) -> String {
    let path = "\(lab.folder.path)/control.sock"
    control = "socket = \"\(path)\""
    return path
  }

  /// The file. What the machine's own files say is left out.
  var text: String {
    """
    [listen]
    addresses = \(quoted(addresses))
    \(listen)
    \(shares)
    \(providers.joined(separator: "\n"))
    [localdns]
    servers = \(quoted(localServers.map(\.description)))
    \(local)
    [names]
    hosts_file = ""
    [log]
    level = "debug"
    [control]
    \(control)
    \(more)
    """
  }
}

extension Settings {
  /// A provider of kind json at `/resolve` over HTTP.
  static func json(_ server: Address, _ more: String = "") -> String {
    provider("json", "url = \"http://\(server)/resolve\"\n\(more)")
  }

  /// A provider of kind doh at `/dns-query` over HTTP: what a zone has comes through octet by octet.
  static func doh(_ server: Address, _ more: String = "") -> String {
    provider("doh", "url = \"http://\(server)/dns-query\"\n\(more)")
  }

  /// A provider of kind alidns over HTTP, unsigned unless there is more.
  static func alidns(_ server: Address, _ more: String = "") -> String {
    provider("alidns", "scheme = \"http\"\nservers = [\"\(server)\"]\n\(more)")
  }

  /// A provider of kind json or doh, with the certificate of `dns.google`.
  ///
  /// - Parameter authority: the file of the certificate that the server's own is to be checked with.
  static func secure(_ kind: String, _ server: Address, _ authority: String?, _ more: String = "") -> String {
    let path = kind == "json" ? "resolve" : "dns-query"
    return provider(
      kind,
      """
      url = "https://dns.google/\(path)"
      servers = ["\(server)"]
      \(authority.map { "ca_file = \"\($0)\"" } ?? "")
      \(more)
      """)
  }

  /// A provider of one of the three kinds over HTTP.
  static func plain(_ kind: String, _ server: Address) -> String {
    switch kind {
    case "json": json(server)
    case "alidns": alidns(server)
    default: doh(server)
    }
  }

  static func provider(_ kind: String, _ keys: String) -> String { "[[provider]]\nkind = \"\(kind)\"\n\(keys)\n" }
}

/// A TOML array of strings.
func quoted(_ texts: [String]) -> String { "[\(texts.map { "\"\($0)\"" }.joined(separator: ", "))]" }
