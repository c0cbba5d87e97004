// FileContent.swift -- why a file of the configuration cannot be read, and what to do about it.

import Files
import Glibc

/// Reads the files that a configuration consists of.
enum FileContent {
  /// Why a file could not be read.
  struct Failure: Error {
    enum Kind: Equatable { case missing, notPermitted, other }

    let kind: Kind
    /// What is wrong with the file: the first clause of a `Mistake` of the wording `.failure`.
    let found: String

    fileprivate init(_ fault: FileFault) {
      switch fault {
      case .unreadable(EACCES), .unreadable(EPERM):
        (kind, found) = (.notPermitted, "\(Reader.ours.user) may not read it")
      case .unreadable(ENOENT), .unreadable(ENOTDIR): (kind, found) = (.missing, "no such file")
      case .unreadable(EISDIR): (kind, found) = (.other, "is a directory")
      case .unreadable: (kind, found) = (.other, "cannot be read (\(fault))")
      case .special, .tooLarge: (kind, found) = (.other, "is \(fault)")
      }
    }

    /// What to do about it: the second clause.
    ///
    /// - Parameters:
    ///   - wanted: the expected kind of file, with its article.
    ///   - missing: the remedy if the file does not exist.
    func remedy(_ wanted: String, missing: String) -> String {
      switch kind {
      case .missing: missing
      case .notPermitted: "allow this user to read it (chmod) and to enter its folders"
      case .other: "expected \(wanted)"
      }
    }
  }

  /// Why a file could not be read now, as `Failure.found`; nil if it could. Reads nothing of it.
  static func problem(_ path: String) -> String? { RegularFile.problem(path).map { Failure($0).found } }

  static func read(_ path: String, limit: Int) throws(Failure) -> RegularFile {
    do throws(FileFault) { return try RegularFile(path, limit: limit) } catch { throw Failure(error) }
  }
}
