// Simulator.swift -- a running httpdns-simulator, and its controls.

import Foundation

/// An HTTPDNS service on loopback.
final class Simulator {
  /// What it was asked, as far as tests look.
  struct Request: Decodable {
    let time: Int
    let transport: String
    let method: String
    let path: String
    let host: String?
    let dialect: String?
    let name: String?
    let type: String?
    let verified: Bool?
    let status: Int
    let parameters: [String: String]
    /// Each name and type that was asked, such as `example.com. A`.
    let questions: [String]
    /// The cipher of names and reply.
    let cipher: String?
    /// What the real service would charge.
    let units: Int
  }

  /// Its counters.
  struct Count: Decodable {
    let transfers: Int
    let connections: Int
    let questions: [String: Int]
    /// What the real services would charge, by dialect.
    let units: [String: Int]
  }

  let process: ChildProcess
  /// Where it serves HTTP.
  let http: Address
  /// Where it serves HTTPS, and the file with the CA's certificate.
  let https: (address: Address, authority: String)?
  private let controlAddress: Address

  /// Starts a simulator that also serves HTTPS where there is a file to write the CA to.
  init(_ arguments: [String], at host: String = "127.0.0.1", authority: String?) throws {
    var command = [Programs.simulator, "--listen", "\(host):0", "--control", "127.0.0.1:0"] + arguments
    if let authority { command += ["--listen-tls", "127.0.0.1:0", "--ca-out", authority] }
    process = try ChildProcess(command)
    let addresses = try process.wait(for: "addresses", in: .output) { text in
      let found = text.matches(of: /listening (\w+) (\S+)/).map { (String($0.1), Address(text: $0.2)) }
      return found.contains { $0.0 == "control" } ? Dictionary(uniqueKeysWithValues: found) : nil
    }
    guard case (let http??, let control??) = (addresses["http"], addresses["control"]) else {
      throw Failure("the simulator did not say where it listens: \(process.text(.output))")
    }
    self.http = http
    controlAddress = control
    https = authority.flatMap { file in (addresses["https"] ?? nil).map { ($0, file) } }
  }

  /// What was asked so far.
  var count: Count { get throws { try JSONDecoder().decode(Count.self, from: control("GET", "count")) } }

  /// The requests so far, oldest first.
  var requests: [Request] { get throws { try JSONDecoder().decode([Request].self, from: control("GET", "requests")) } }

  /// Adds a fault, such as `kind=delay&ms=200`.
  func fault(_ parameters: String) throws { try control("POST", "fault?\(parameters)") }

  /// Removes all faults.
  func clearFaults() throws { try control("DELETE", "fault") }

  /// Changes settings, such as `not-listed=example.net&emas-age=10`.
  func set(_ settings: String) throws { try control("POST", "settings?\(settings)") }

  /// Answers from another zone from now on.
  func setZone(_ text: String) throws { try control("PUT", "zone", body: text) }

  /// Waits until `count` transfers have been received.
  func waitForTransfers(_ count: Int) throws {
    try eventually("\(count) transfers") { try self.count.transfers >= count ? true : nil }
  }

  @discardableResult
  private func control(_ method: String, _ path: String, body: String = "") throws -> Data {
    let socket = try Socket.stream(to: controlAddress)
    let head = "\(method) /_simulator/\(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    socket.send(Array("\(head)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
    var response: [UInt8] = []
    while let part = socket.receive(), !part.isEmpty { response += part }
    guard let end = Data(response).range(of: Data("\r\n\r\n".utf8)),
      let status = Int(String(decoding: response[9..<12], as: UTF8.self))
    else { throw Failure("\(method) \(path): no response") }
    let content = Data(response)[end.upperBound...]
    guard (200...299).contains(status) else {
      throw Failure("\(method) \(path): \(status) \(String(decoding: content, as: UTF8.self))")
    }
    return Data(content)
  }
}
