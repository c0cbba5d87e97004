// NetworkNamespace.swift -- a machine of its own for a program: one link, one default route, its own /etc.
//
// The namespace has no name and belongs to a process: with that, the link is gone too. Its routers are addresses of this
// machine, at the other end of the link.

import Foundation
import Synchronization

/// A network namespace in which a daemon or a simulator runs, with this machine as all of its world.
final class NetworkNamespace {
  /// Where this machine is seen from there, behind the routers: what is sent there takes the default route.
  let world: String
  /// The routers. There may be a route over either.
  let routers: [String]
  /// The address in there.
  let host: String
  /// Unused addresses of the link.
  let strangers: [String]
  /// What a program in there is started with.
  let prefix: [String]
  private let second: String
  private let process: ChildProcess
  private let link: String
  private let files: String

  /// Whether this process may make namespaces, mounts and links.
  static let isPossible: Bool = {
    let tool = "mount --bind /tmp /etc && ip link add hd\(getpid())t type veth peer name hd\(getpid())u"
    return geteuid() == 0
      && (try? ChildProcess.run(["unshare", "--net", "--mount", "sh", "-c", tool]))?.ending == .exited(0)
  }()

  private static let count = Atomic<UInt32>(0)

  /// - Parameter isConnected: whether there is a default route from the start, over the first router.
  init(in lab: Lab, isConnected: Bool = true) throws {
    let number = NetworkNamespace.count.add(1, ordering: .relaxed).oldValue
    // Addresses of RFC 6598: for each process that runs these tests a network of 2,048, for each of its tests one of 16. A
    // link is there for a moment after its test.
    let network = UInt32(100) << 24 | UInt32(64) << 16 | (UInt32(getpid()) % 2_048) << 11 | (number % 128) << 4
    let text = { (host: UInt32) in
      (0..<4).map { "\((network | host) >> (24 - $0 * 8) & 0xFF)" }.joined(separator: ".")
    }
    (routers, host, strangers, world) = ([text(1), text(2)], text(3), (4...6).map(text), text(14))
    second = "\(text(9))/29"
    files = "\(lab.folder.path)/etc"
    try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
    process = try lab.start([
      "unshare", "--net", "--mount", "--", "sh", "-c", "mount --bind '\(files)' /etc && echo there && exec sleep 300",
    ])
    try process.wait(for: "namespace", in: .output) { $0.contains("there") ? true : nil }
    prefix = ["nsenter", "--target", "\(process.pid)", "--net", "--mount", "--root", "--"]
    link = "hd\(getpid())n\(number)"
    try run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", "\(process.pid)")
    // /32: the routers are neighbours there, and none of this is part of a network here.
    for address in routers { try run("ip", "address", "add", "\(address)/32", "dev", link) }
    try run("ip", "address", "add", "\(world)/32", "dev", link)
    try run("ip", "link", "set", link, "up")
    try run("ip", "route", "add", host, "dev", link, "src", routers[0])
    try runThere("ip", "link", "set", "lo", "up")
    try runThere("ip", "address", "add", "\(host)/29", "dev", "eth0")
    try runThere("ip", "link", "set", "eth0", "up")
    if isConnected { try route(over: 0) }
  }

  /// From now on everything goes over that router.
  func route(over router: Int) throws { try runThere("ip", "route", "replace", "default", "via", routers[router]) }

  /// Gives it a default route of IPv6, and this machine addresses behind it: the router, which is returned, and these.
  func routeIPv6(to addresses: [String]) throws -> String {
    let network = "fd00:\(host.split(separator: ".").map { String(Int($0)!, radix: 16) }.joined(separator: ":"))"
    for address in ["\(network)::1/64"] + addresses.map({ "\($0)/128" }) {
      try run("ip", "address", "add", address, "dev", link, "nodad")
    }
    try runThere("ip", "address", "add", "\(network)::3/64", "dev", "eth0", "nodad")
    try runThere("ip", "route", "add", "default", "via", "\(network)::1")
    return "\(network)::1"
  }

  /// Containers come and go: each has an interface, an address and a route.
  func startContainers(_ count: Int) throws {
    for number in 0..<count {
      try runThere("ip", "link", "add", "veth\(number)", "type", "veth", "peer", "name", "peer\(number)")
      try runThere("ip", "address", "add", "10.77.\(number).1/24", "dev", "veth\(number)")
      for name in ["veth", "peer"] { try runThere("ip", "link", "set", "\(name)\(number)", "up") }
    }
  }

  /// The machine gets an address in the network of `world`, or loses it.
  func joinSecondNetwork() throws { try runThere("ip", "address", "add", second, "dev", "eth0") }
  func leaveSecondNetwork() throws { try runThere("ip", "address", "delete", second, "dev", "eth0") }

  /// The machine gets an address with the mask 0.0.0.0.
  func joinNetworkOfEverybody(as address: String) throws {
    try runThere("ip", "address", "add", "\(address)/0", "dev", "eth0", "noprefixroute")
  }

  /// The link fails and comes back, with the same router behind it.
  func flap(over router: Int) throws {
    try runThere("ip", "link", "set", "eth0", "down")
    try runThere("ip", "link", "set", "eth0", "up")
    try route(over: router)
  }

  /// From now on nothing comes back from there to this machine: no data, no acknowledgement, no FIN. The link stays as it
  /// is.
  func cut() throws { try runThere("ip", "route", "add", "blackhole", "\(routers[0])/32") }

  /// Ends `cut`.
  func restore() throws { try runThere("ip", "route", "delete", "blackhole", "\(routers[0])/32") }

  /// Replaces /etc/resolv.conf as its writers do: by renaming.
  func setResolvers(_ addresses: [String], more lines: String...) throws {
    let text = addresses.map { "nameserver \($0)\n" }.joined() + lines.map { "\($0)\n" }.joined()
    try text.write(toFile: "\(files)/resolv.new", atomically: false, encoding: .utf8)
    guard rename("\(files)/resolv.new", "\(files)/resolv.conf") == 0 else { throw Failure("cannot rename") }
  }

  /// Writes a file in its /etc.
  func write(_ name: String, _ text: String) throws {
    try text.write(toFile: "\(files)/\(name)", atomically: true, encoding: .utf8)
  }

  private func runThere(_ arguments: String...) throws {
    try run(["nsenter", "--target", "\(process.pid)", "--net"] + arguments)
  }

  private func run(_ arguments: String...) throws { try run(arguments) }

  private func run(_ arguments: [String]) throws {
    let (ending, _, error) = try ChildProcess.run(arguments)
    guard ending == .exited(0) else { throw Failure("\(arguments.joined(separator: " ")): \(error)") }
  }
}
