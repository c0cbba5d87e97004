// HTTP2Proxy.swift -- nghttpx before the simulator: HTTP/2 as another program speaks it.

import Foundation
import Testing

/// nghttpx, which speaks HTTP/2 over TLS for a server that does not.
struct HTTP2Proxy {
  /// Where it listens.
  let address: Address
  /// The file of the certificate that its own is to be checked with.
  let authority: String
  /// The program.
  let process: ChildProcess
  private let logFile: String

  /// - Parameters:
  ///   - handlesSignals: whether it has a process more, which knows what SIGQUIT means.
  ///   - options: more of nghttpx's.
  init(in lab: Lab, before backend: Address, handlesSignals: Bool = false, _ options: String...) throws {
    authority = "\(lab.folder.path)/h2.pem"
    logFile = "\(lab.folder.path)/access.log"
    let key = "\(lab.folder.path)/h2.key"
    let (ending, _, error) = try ChildProcess.run([
      "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
      "-subj", "/CN=test", "-addext", "subjectAltName=DNS:dns.google", "-keyout", key, "-out", authority,
    ])
    guard ending == .exited(0) else { throw Failure("openssl: \(error)") }
    // nghttpx does not say which port it was given: a port is chosen here, and another one if that is taken by then.
    var address: Address
    var process: ChildProcess
    var attempt = 0
    repeat {
      address = try Socket(SOCK_STREAM, boundTo: Address("127.0.0.1", 0)).address
      process = try lab.start(
        [
          "nghttpx", "--conf=/dev/null", "--single-thread", "--no-ocsp",
          "--frontend=\(address.host),\(address.port)", "--backend=\(backend.host),\(backend.port)",
          "--accesslog-file=\(logFile)", "--accesslog-format=$alpn $remote_port",
        ] + (handlesSignals ? [] : ["--single-process"]) + options + [key, authority])
      attempt += 1
    } while try !HTTP2Proxy.isListening(process, address) && attempt < 3
    self.address = address
    self.process = process
  }

  /// Waits for `count` lines, one for each request, and returns all lines.
  func accessLog(lines count: Int) throws -> [String] {
    try eventually("\(count) lines of the access log") {
      let lines = try String(contentsOfFile: logFile, encoding: .utf8).split(separator: "\n").map(String.init)
      return lines.count >= count ? lines : nil
    }
  }

  /// A provider of kind doh behind it.
  func provider(_ more: String = "") -> String { Settings.secure("doh", address, authority, more) }

  private static func isListening(_ process: ChildProcess, _ address: Address) throws -> Bool {
    try eventually("nghttpx listens", within: .seconds(10)) {
      if (try? process.waitForEnd(within: .zero)) != nil { return false }
      return (try? Socket.stream(to: address)) != nil ? true : nil
    }
  }
}
