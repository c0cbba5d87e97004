// Elsewhere.swift -- a simulator in a network namespace of its own, behind a link that can be cut without a trace.
//
// The namespace has no name and belongs to the simulator's process: with that, the link is gone too.

import Foundation

/// A simulator that is reached over a link.
final class Elsewhere {
  /// Where it serves HTTPS.
  let https: Address
  /// The file with the CA's certificate.
  let authority: String
  private let process: ChildProcess
  private let here: String

  /// Whether this process may make namespaces and links.
  static let isPossible: Bool = {
    let tool = "ip link add hd\(getpid())t type veth peer name hd\(getpid())u"
    return geteuid() == 0 && (try? ChildProcess.run(["unshare", "--net", "sh", "-c", tool]))?.ending == .exited(0)
  }()

  init(in lab: Lab) throws {
    // Addresses of RFC 2544, a network of four for each process that runs these tests.
    let network = UInt32(198) << 24 | UInt32(19) << 16 | (UInt32(getpid()) % 16_384) << 2
    let text = { (host: UInt32) in (0..<4).map { "\((network | host) >> (24 - $0 * 8) & 0xFF)" }.joined(separator: ".")
    }
    here = text(1)
    let there = text(2)
    authority = "\(lab.folder.path)/elsewhere.pem"
    process = try lab.start([
      "unshare", "--net", "--", Programs.simulator, "--listen-tls", "0.0.0.0:0", "--ca-out", authority,
    ])
    let port = try process.wait(for: "an address", in: .output) { text in
      text.firstMatch(of: /listening https \S+:(\d+)/).flatMap { UInt16($0.1) }
    }
    https = Address(there, port)
    let (link, peer) = ("hd\(getpid())a", "hd\(getpid())b")
    try run("ip", "link", "add", link, "type", "veth", "peer", "name", peer, "netns", "\(process.pid)")
    try runThere("ip", "address", "add", "\(there)/30", "dev", peer)
    try runThere("ip", "link", "set", peer, "up")
    try run("ip", "address", "add", "\(here)/30", "dev", link)
    try run("ip", "link", "set", link, "up")
    // The first packets after that may be lost.
    _ = try Socket.stream(to: https)
  }

  /// From now on nothing comes back from there: no data, no acknowledgement, no FIN.
  func cut() throws { try runThere("ip", "route", "add", "blackhole", "\(here)/32") }

  /// Ends `cut`.
  func restore() throws { try runThere("ip", "route", "delete", "blackhole", "\(here)/32") }

  private func runThere(_ arguments: String...) throws {
    try run(["nsenter", "--target", "\(process.pid)", "--net"] + arguments)
  }

  private func run(_ arguments: String...) throws { try run(arguments) }

  private func run(_ arguments: [String]) throws {
    let (ending, _, error) = try ChildProcess.run(arguments)
    guard ending == .exited(0) else { throw Failure("\(arguments.joined(separator: " ")): \(error)") }
  }
}
