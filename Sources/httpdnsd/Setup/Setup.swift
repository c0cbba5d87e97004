// Setup.swift -- applies and undoes the changes of `setup`, and runs the commands that follow.

import ArgumentParser
import Glibc
import SystemSetup

enum Setup {
  /// Makes the changes of a plan, and runs the commands that make other programs notice them.
  static func apply(_ plan: Plan, _ root: Root) throws {
    try needRoot(root)
    try attempt { () throws(SetupError) in try Installation(root: root).apply(plan) }
    try run(plan.commands, root)
    guard root.isMachine, SystemCommand.isServiceActive else { return }
    try engage(root) { engagement throws(SetupError) in try engagement.resume(isService: true) }
  }

  /// Undoes the applied setup.
  ///
  /// - Returns: the method that was applied; nil if none was.
  static func undo(_ changed: Installation.Changed, _ root: Root, isQuiet: Bool) throws -> SetupMethod? {
    if try journal(root) != nil { try needRoot(root) }
    let installation = Installation(root: root)
    // Also if nothing is applied: a killed process may have left files behind.
    let undone = try attempt { () throws(SetupError) in
      try installation.undo(changed) { journal throws(SetupError) in
        let engagement = engagement(journal, root, isQuiet: isQuiet)
        if root.isMachine || engagement.isEngaged == true { report(try engagement.pause()) }
        try engagement.forget()
      }
    }
    guard let undone else { return nil }
    // Also with --quiet: nothing else reports it later.
    report(undone.left.map { "\($0) does not name httpdnsd any more and stays as it is" })
    report(
      undone.setAside.map {
        "\($0.path) was changed since setup: what was there before is back, the changed file is \($0.aside)"
      })
    try run(undone.journal.commandsAfterUndo, root, isQuiet: isQuiet)
    return undone.journal.method
  }

  /// Removes what setup has made if its journal is missing, or, by force, damaged; otherwise does nothing and returns
  /// false.
  static func abandon(_ root: Root, isForced: Bool) throws -> Bool {
    let installation = Installation(root: root)
    if try attempt({ () throws(SetupError) in try installation.remains() }) != nil { try needRoot(root) }
    let isAbandoned = try attempt { () throws(SetupError) in
      if root.isMachine, geteuid() != 0 { return false }
      return try installation.abandon(isForced: isForced)
    }
    // Of every method, since none is known.
    if isAbandoned { try run(Journal.commandsAfterLoss, root, isQuiet: true) }
    return isAbandoned
  }

  /// The state of name resolution after a hook.
  struct HookState {
    let method: SetupMethod
    /// Whether the machine asks httpdnsd now; nil if that does not depend on the service.
    let isEngaged: Bool?
  }

  /// Runs a hook if setup is applied, and reports the problems that it returns.
  ///
  /// - Returns: nil if nothing is applied.
  @discardableResult
  static func engage(
    _ root: Root, isQuiet: Bool = false, _ body: (Engagement) throws(SetupError) -> [String]
  ) throws -> HookState? {
    if try journal(root) != nil { try needRoot(root) }
    return try attempt { () throws(SetupError) in
      try Installation(root: root).whileApplied { journal throws(SetupError) in
        let engagement = engagement(journal, root, isQuiet: isQuiet)
        report(try body(engagement))
        return HookState(method: journal.method, isEngaged: engagement.isEngaged)
      }
    }
  }

  private static func engagement(_ journal: Journal, _ root: Root, isQuiet: Bool) -> Engagement {
    guard !root.isMachine else { return Engagement(journal, root: root) }
    return Engagement(journal, root: root) { command in
      if !isQuiet { notRun(command) }
      return (0, "")
    }
  }

  /// The journal of the applied setup; nil if none is applied.
  static func journal(_ root: Root) throws -> Journal? {
    try attempt { () throws(SetupError) in try Installation(root: root).journal() }
  }

  /// Runs `body`. If it fails, reports the reason and throws `ExitCode.failure`.
  static func attempt<Value>(_ body: () throws(SetupError) -> Value) throws -> Value {
    do throws(SetupError) { return try body() } catch { throw failure("\(error)") }
  }

  /// Writes the reason to stderr and returns the error to throw.
  static func failure(_ reason: String) -> ExitCode { Console.failure("httpdnsd: \(reason)") }

  /// Reports problems of a request that otherwise succeeded.
  static func report(_ problems: [String]) {
    for problem in problems { Console.error("httpdnsd: \(problem)") }
  }

  /// Throws `ExitCode.failure` if this process may not change the machine.
  static func needRoot(_ root: Root) throws {
    guard root.isMachine, geteuid() != 0 else { return }
    throw failure("this changes the machine and needs root (sudo); nothing was changed")
  }

  private static func run(_ commands: [SystemCommand], _ root: Root, isQuiet: Bool = false) throws {
    guard root.isMachine else {
      if !isQuiet { commands.forEach(notRun) }
      return
    }
    report(commands.filter { $0.run().status != 0 }.map { "`\($0)` failed; the files are in place" })
  }

  private static func notRun(_ command: SystemCommand) { print("not run, because of --root: \(command)") }
}
