// WebClient.swift -- pages of a daemon's web server, and the samples of its metrics.

import Foundation

/// Reads pages of a daemon's web server, a connection each.
struct WebClient {
  struct Response {
    let status: Int
    /// Everything that came.
    let text: String
    let body: String
  }

  let address: Address

  init(_ daemon: Daemon) throws {
    let line = daemon.log.firstMatch(of: /metrics at http:\/\/([^\/\s]+)\/metrics/)
    guard let line, let address = Address(text: String(line.1)) else { throw Failure("no web server: \(daemon.log)") }
    self.address = address
  }

  func get(_ path: String) throws -> Response {
    let socket = try Socket.stream(to: address)
    socket.send(Array("GET \(path) HTTP/1.1\r\nHost: \(address)\r\nConnection: close\r\n\r\n".utf8))
    var octets: [UInt8] = []
    while let piece = socket.receive(within: Socket.patience), !piece.isEmpty { octets += piece }
    let text = String(decoding: octets, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n"), let status = Int(text.dropFirst(9).prefix(3)) else {
      throw Failure("no response at \(path): \(text)")
    }
    return Response(status: status, text: text, body: String(text[end.upperBound...]))
  }
}

/// The samples of a page.
struct Scrape {
  private(set) var samples: [String: Double] = [:]

  init(text: String) {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      guard let space = line.lastIndex(of: " ") else { continue }
      samples[String(line[..<space])] = Double(line[line.index(after: space)...])
    }
  }

  /// The value of a sample, by its name with its labels.
  subscript(name: String) -> Double? { samples[name] }

  /// The sum over all labels.
  func sum(of family: String) -> Double {
    samples.filter { $0.key.hasPrefix("\(family){") }.map(\.value).reduce(0, +)
  }

  /// The samples of counters and histograms: none of them ever falls.
  var counters: [String: Double] {
    samples.filter { $0.key.contains(/^[a-z_]+_(?:total|count|sum|bucket)(?:\{|$)/) }
  }

  /// What came between two scrapes.
  static func - (later: Scrape, earlier: Scrape) -> Scrape {
    var difference = later
    for (name, value) in earlier.samples { difference.samples[name, default: 0] -= value }
    return difference
  }
}
