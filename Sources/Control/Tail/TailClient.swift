// TailClient.swift -- reads answered queries from the daemon until either side closes.

import DNSWire
import EventLoop
import Glibc

extension ControlClient {
  /// The longest head of a response, in octets.
  private static let longestHead = 16_384

  /// Passes lines of answered queries to `take` until it returns false.
  ///
  /// - Parameters:
  ///   - name: only queries for this name and names below it; nil for all.
  ///   - take: receives octets, usually complete lines; returns false to stop.
  /// - Throws: `ControlClientError.closed` if the daemon closes the connection.
  public func tail(
    _ name: String?, onlyFailed: Bool, _ form: ControlForm, _ take: ([UInt8]) -> Bool
  ) throws(ControlClientError) {
    let parts = [name.map { "name=\(PercentText.encode($0))" }, onlyFailed ? "failed" : nil].compactMap { $0 }
    let target = parts.isEmpty ? "/tail" : "/tail?\(parts.joined(separator: "&"))"
    let descriptor = try connected()
    defer { close(descriptor) }
    // HTTP/1.0 has no chunks.
    let head = "GET \(target) HTTP/1.0\r\nHost: localhost\r\nAccept: \(form.contentType)\r\n\r\n"
    send(Array(head.utf8), to: descriptor)
    var octets: [UInt8] = []
    var bodyStart: Int?
    while bodyStart == nil {
      let block = try receive(from: descriptor, by: .now + patience)
      guard !block.isEmpty, octets.count < ControlClient.longestHead else { throw .unreadable(path: path) }
      octets += block
      bodyStart = ControlClient.endOfHead(octets).map { $0 + 4 }
    }
    guard let start = bodyStart, let status = ControlClient.head(octets[..<start])?.status else {
      throw .unreadable(path: path)
    }
    guard status == 200 else {
      while octets.count < ControlClient.longestHead,
        let block = try? receive(from: descriptor, by: .now + patience), !block.isEmpty
      {
        octets += block
      }
      throw ControlClient.refusal(status, String(decoding: octets[start...], as: UTF8.self))
    }
    var block = Array(octets[start...])
    while block.isEmpty || take(block) {
      block = try receive(from: descriptor, by: nil)
      if block.isEmpty { throw .closed(path: path) }
    }
  }
}
