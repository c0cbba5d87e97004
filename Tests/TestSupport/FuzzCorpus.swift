// FuzzCorpus.swift -- the inputs in Fuzz/Corpus.

import Files
import Glibc

/// The inputs that were once of interest to a fuzz target.
public enum FuzzCorpus {
  /// Where the folders of the targets are.
  public static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" } + "/Fuzz/Corpus"

  /// The targets with a folder.
  public static var targets: [String] { names(in: root) }

  /// The inputs of a target, with the paths of their files. None without its folder.
  public static func inputs(of target: String) -> [(path: String, octets: [UInt8])] {
    names(in: "\(root)/\(target)").map { name in
      let path = "\(root)/\(target)/\(name)"
      return (path, content(of: path))
    }
  }

  /// The entries of a folder, hidden ones left out.
  private static func names(in folder: String) -> [String] {
    (Folder.names(in: folder) ?? []).filter { !$0.hasPrefix(".") }.sorted()
  }

  private static func content(of path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { preconditionFailure("\(path) cannot be read") }
    defer { fclose(file) }
    var octets: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&block, 1, block.count, file), count > 0 { octets += block[..<count] }
    return octets
  }
}
