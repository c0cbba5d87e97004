// SetupUndoCommand.swift -- `httpdnsd setup undo` and `status`: restores the state before setup; shows what is applied.

import ArgumentParser
import SystemSetup

struct SetupUndoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Restore everything that setup has changed.",
    discussion: """
      Restores content, mode, owner and time of each file, links and folders, even after a setup or an undo that was \
      killed. If a file was changed since, it undoes nothing and shows the difference. An /etc/resolv.conf that does not \
      name httpdnsd any more is another program's and stays as it is. If nothing is applied, it does nothing and exits \
      with 0.

      Example: sudo httpdnsd setup undo
      """)

  @OptionGroup var root: SetupRootOption

  @Flag(help: "Restore the state before setup, even of files that were changed since.") var force = false

  @Flag(help: "Restore the state before setup, and keep files that were changed since as FILE.httpdnsd-changed.")
  var keepChanged = false

  @Flag(help: "Print nothing unless something goes wrong.") var quiet = false

  func validate() throws {
    if force, keepChanged { throw ValidationError("--force and --keep-changed exclude each other") }
  }

  func run() throws {
    if try Setup.abandon(root.place, isForced: force) {
      // Also with --quiet: a file that setup has replaced is not what it was.
      Setup.report(["what setup has made is removed; the state before is not known: check /etc/resolv.conf"])
      return
    }
    let method = try Setup.undo(force ? .overwrite : keepChanged ? .setAside : .refuse, root.place, isQuiet: quiet)
    guard !quiet else { return }
    print(method.map { "`setup \($0.rawValue)` is undone" } ?? "nothing is applied")
  }
}

struct SetupStatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show which method is applied, or which one fits this machine.",
    discussion: "Example: httpdnsd setup status")

  @OptionGroup var root: SetupRootOption

  @Option(help: SetupOptions.configHelp, completion: .file()) var config: String?

  func run() throws {
    let journal: Journal
    switch try Setup.attempt({ () throws(SetupError) in try Installation(root: root.place).application() }) {
    case .journal(let applied): journal = applied
    case .unreadable:
      print("applied: `sudo httpdnsd setup status` shows what, which needs root")
      if root.place.isMachine { print(use) }
      return
    case .lost(let remains):
      print(remains)
      return
    case nil:
      print("nothing is applied")
      print(try advice())
      return
    }
    let port = journal.nameserver.port == Nameserver.standardPort ? "" : " port \(journal.nameserver.port)"
    print("applied: \(journal.method.rawValue), for \(journal.nameserver.host)\(port)")
    if root.place.isMachine { print(use(of: journal.method, journal.nameserver)) }
    if journal.method == .networkManager, let obstacle = DispatcherUnit.obstacle(in: root.place) { print(obstacle) }
    for change in journal.changes where !change.isFolder { print("  \(change.path)") }
  }

  /// Whether programs use httpdnsd, for a user who may not know the address that they are to ask.
  private var use: String {
    switch MachineTrial.verdict(about: nil) {
    case .used: "programs on this machine use httpdnsd"
    case .unused, .silent: SetupRequest.unused + "root can see why"
    case .unknown: SetupRequest.untried
    }
  }

  private func use(of method: SetupMethod, _ nameserver: Nameserver) -> String {
    var request = SetupRequest(root.place)
    request.config = config
    if let sentence = request.sentence(about: method, nameserver) { return sentence.text }
    let rival = Diversion(method, nameserver, root: root.place).rival
    return "programs on this machine use httpdnsd" + (rival.map { "; but \($0)" } ?? "")
  }

  /// The owner of /etc/resolv.conf, the method for it, and the reasons why that method would be refused.
  private func advice() throws -> String {
    switch try Setup.attempt({ () throws(SetupError) in try Manager.find(in: root.place) }) {
    case .known(let method):
      let owner = method == .file ? "has no known owner" : "is \(method.owner)'s"
      let lines = ["/etc/resolv.conf \(owner): `httpdnsd setup \(method.rawValue)`"]
      return (lines + obstacles(method).map { "not yet: \($0)" }).joined(separator: "\n")
    case .other(let owner, let help): return "/etc/resolv.conf is \(owner): \(help)"
    }
  }

  /// The reasons why `--apply` of a method would be refused.
  private func obstacles(_ method: SetupMethod) -> [String] {
    var request = SetupRequest(root.place)
    request.config = config
    do throws(SetupError) {
      return request.doubts(of: try request.plan(method), starting: false)
    } catch {
      return ["\(error)"]
    }
  }
}
