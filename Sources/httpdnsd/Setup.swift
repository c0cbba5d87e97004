// Setup.swift -- what the subcommands of `setup` do to the machine, with everything that has to be told of it.

import ArgumentParser
import Glibc
import SystemSetup

/// Applying and undoing.
enum Setup {
  /// Makes the changes of a plan, and tells the machine.
  static func apply(_ plan: Plan, _ root: Root) throws {
    try needRoot(root)
    try attempt { () throws(SetupError) in try Installation(root: root).apply(plan) }
    try run(plan.commands, root)
    guard root.isMachine, isServiceActive else { return }
    try engage { engagement throws(SetupError) in try engagement.resume(isService: true) }
  }

  /// Takes everything back.
  ///
  /// - Returns: what was applied; nil where nothing was.
  static func undo(_ changed: Installation.Changed, _ root: Root) throws -> SetupMethod? {
    if try journal(root) != nil { try needRoot(root) }
    // Where nothing is applied, what a program that was killed has left may still be there.
    let undone = try attempt { () throws(SetupError) in
      try Installation(root: root).undo(changed) { journal throws(SetupError) in
        guard root.isMachine else { return }
        let engagement = Engagement(journal, root: root)
        report(try engagement.pause())
        try engagement.forget()
      }
    }
    guard let undone else { return nil }
    try run(undone.commandsAfterUndo, root)
    return undone.method
  }

  /// Does something with the machine's names where setup is applied, and tells what went wrong.
  static func engage(_ body: (Engagement) throws(SetupError) -> [String]) throws {
    let problems = try attempt { () throws(SetupError) in
      try Installation(root: Root()).whileApplied { journal throws(SetupError) in
        try body(Engagement(journal, root: Root()))
      }
    }
    report(problems ?? [])
  }

  /// What is applied.
  static func journal(_ root: Root) throws -> Journal? {
    try attempt { () throws(SetupError) in try Installation(root: root).journal() }
  }

  /// Runs `body`; where it fails, says why and ends the program.
  static func attempt<Value>(_ body: () throws(SetupError) -> Value) throws -> Value {
    do throws(SetupError) { return try body() } catch { throw failure("\(error)") }
  }

  /// Says why the program ends, and gives the error to throw.
  static func failure(_ reason: String) -> ExitCode {
    Console.error("httpdnsd: \(reason)")
    return .failure
  }

  /// Tells what did not work, though what was asked for is done.
  static func report(_ problems: [String]) {
    for problem in problems { Console.error("httpdnsd: \(problem)") }
  }

  private static func needRoot(_ root: Root) throws {
    guard root.isMachine, geteuid() != 0 else { return }
    throw failure("this changes the machine and needs root (sudo); nothing was changed")
  }

  private static func run(_ commands: [SystemCommand], _ root: Root) throws {
    guard root.isMachine else {
      for command in commands { print("not run, because of --root: \(command)") }
      return
    }
    report(commands.filter { $0.run().status != 0 }.map { "`\($0)` failed; the files are as they should be" })
  }

  private static var isServiceActive: Bool { SystemCommand.isServiceActive.run().status == 0 }
}
