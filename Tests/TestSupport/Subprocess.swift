// Subprocess.swift -- starts a program, or runs it to its end.

import Glibc

/// A program that could not be started.
public struct NoSubprocess: Error, CustomStringConvertible {
  /// Which one, and why.
  public let description: String
}

/// Runs a program that is found by its path or in `PATH`, in this process's environment, to its end.
///
/// - Parameter isQuiet: whether what it says on standard error is let go.
/// - Returns: its status as waitpid(2) has it; 0 where it ended well.
/// - Throws: `NoSubprocess`
public func run(_ arguments: [String], isQuiet: Bool = false) throws(NoSubprocess) -> Int32 {
  let child = try start(arguments, isQuiet: isQuiet)
  var status: Int32 = 0
  while waitpid(child, &status, 0) < 0 && errno == EINTR {}
  return status
}

/// Starts a program as `run` does, and returns its process, which the caller waits for. It inherits the three standard
/// descriptors alone: a connection of another test would not end before the program does.
///
/// - Throws: `NoSubprocess`
public func start(_ arguments: [String], isQuiet: Bool = false) throws(NoSubprocess) -> pid_t {
  var pointers = arguments.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  var files = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&files)
  defer { posix_spawn_file_actions_destroy(&files) }
  if isQuiet { posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) }
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1)
  var child: pid_t = 0
  let failure = posix_spawnp(&child, arguments[0], &files, nil, &pointers, environ)
  guard failure == 0 else { throw NoSubprocess(description: "cannot start \(arguments[0]): error \(failure)") }
  return child
}
