// Programs.swift -- where the programs are that the tests start, and the library that some of them are started with.

import Foundation

/// The programs of this package.
enum Programs {
  /// The folder of the programs: `HTTPDNSD_TEST_BINARIES`, or the one that the tests were built into.
  static let folder = ProcessInfo.processInfo.environment["HTTPDNSD_TEST_BINARIES"] ?? buildFolder

  static let daemon = path(of: "httpdnsd")
  static let simulator = path(of: "httpdns-simulator")

  /// A library that ends a program that asks libc for a name; compiled once a run.
  static func lookupRefusal() throws -> String { try compiledRefusal.get() }

  /// A library that moves a program's wall clock by as many seconds as stand in the file `CLOCK_OFFSET_FILE`.
  static func clockShift() throws -> String { try compiledShift.get() }

  /// A program that makes a thread of another one stand still.
  static func threadFreezer() throws -> String { try compiledFreezer.get() }

  private static func path(of program: String) -> String { "\(folder)/\(program)" }

  /// Where the tests were built.
  private static let buildFolder: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return (tests as NSString).deletingLastPathComponent
  }()

  private static let compiledRefusal = Result { try compile("refuse_lookups") }
  private static let compiledShift = Result { try compile("shift_clock") }
  private static let compiledFreezer = Result { try compile("freeze_thread", isLibrary: false) }

  private static func compile(_ name: String, isLibrary: Bool = true) throws -> String {
    let source = (#filePath as NSString).deletingLastPathComponent + "/../Data/\(name).c"
    let result = "\(buildFolder)/\(name)" + (isLibrary ? ".so" : "")
    // Renamed into place: another run of the tests may be using it.
    let made = "\(result).\(getpid())"
    let compiler = ["cc", "gcc", "clang"].first { findInPath($0) } ?? "cc"
    let options = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-O1"] + (isLibrary ? ["-shared", "-fPIC"] : [])
    let (ending, _, error) = try ChildProcess.run(
      [compiler] + options + ["-o", made, source], within: .seconds(60))
    guard ending == .exited(0), rename(made, result) == 0 else { throw Failure("\(compiler): \(error)") }
    return result
  }

  private static func findInPath(_ program: String) -> Bool {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
  }
}

/// A folder for one test's files; removed with the last reference.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    var template = Array((NSTemporaryDirectory() + "httpdnsd-test-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw Failure("no temporary folder: \(String(cString: strerror(errno)))") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Writes a file that only its owner can read, and returns its path.
  func write(_ text: String, to name: String) throws -> String {
    let file = "\(path)/\(name)"
    let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
    guard FileManager.default.createFile(atPath: file, contents: Data(text.utf8), attributes: attributes) else {
      throw Failure("cannot write \(file)")
    }
    return file
  }
}
