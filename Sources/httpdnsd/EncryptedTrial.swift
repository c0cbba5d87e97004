// EncryptedTrial.swift -- asks an encrypted listener one question as a strict client would, and says what such a client minds.

import DNSWire
import EventLoop
import Forwarder
import Glibc
import Streams

/// A trial of one listener, on a loop of its own.
struct EncryptedTrial {
  /// What is spoken there.
  enum Service {
    case dot
    /// With the path of the requests, and a token if clients need one.
    case doh(path: String)
    /// The same without TLS.
    case dohPlain(path: String)

    var word: String {
      switch self {
      case .dot: "DoT"
      case .doh: "DoH"
      case .dohPlain: "DoH without TLS"
      }
    }
  }

  let service: Service
  let address: SocketAddress
  /// The name, or the address, that the certificate must have, and that requests are for. A name is sent as SNI.
  let name: String
  /// Nil without TLS.
  let trust: TrustStore?

  /// The objection where each request names its client, and this one may not ask.
  static let notAllowed = "this machine is not in encrypted.allow"

  /// The most time for one connection.
  private static let time = Duration.seconds(3)
  /// A question that the daemon answers itself.
  private static let question = Question(name: DomainName(text: "localhost")!, type: .a)

  /// What a strict client, or a proxy without TLS, minds, in one line; nil if it gets its answer.
  func objection() -> String? {
    switch service {
    case .dot:
      return exchange(["dot"], EncryptedTrial.framed) { octets in
        octets.count > 2 && octets.count >= 2 + Int(octets[0]) << 8 + Int(octets[1])
          ? (try? Message.parse(Array(octets[2...]))) != nil : nil
      }
    case .doh(let path):
      // Browsers want HTTP/2; the question then goes over HTTP/1.1, which is text.
      if let objection = exchange(["h2"], nil, { _ in true }) { return objection }
      return ask(path, ["http/1.1"])
    case .dohPlain(let path): return ask(path, nil)
    }
  }

  /// Asks over HTTP/1.1.
  private func ask(_ path: String, _ protocols: [String]?) -> String? {
    let query = Base64URL.encode(EncryptedTrial.query)
    let host = name.contains(":") ? "[\(name)]" : name
    let request = "GET \(path)?dns=\(query) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n"
    var status = ""
    let objection = exchange(protocols, Array(request.utf8)) { octets in
      guard let end = octets.firstIndex(of: 13) else { return nil }
      status = String(decoding: octets[..<end], as: UTF8.self)
      return status.hasPrefix("HTTP/1.1 200")
    }
    if status.hasPrefix("HTTP/1.1 403") { return EncryptedTrial.notAllowed }
    return objection == nil || status.isEmpty ? objection : "a query gets \"\(status)\""
  }

  private static var query: [UInt8] { (try? Message.query(question, id: 0).compose()) ?? [] }
  private static var framed: [UInt8] { [UInt8(query.count >> 8), UInt8(query.count & 255)] + query }

  /// Connects, shakes hands and exchanges octets.
  ///
  /// - Parameters:
  ///   - protocols: what is offered; the listener has to choose the first one. Nil for no TLS.
  ///   - request: sent after the handshake; nil for nothing.
  ///   - judge: whether the octets so far are the answer; nil if more have to come.
  private func exchange(
    _ protocols: [String]?, _ request: [UInt8]?, _ judge: @escaping ([UInt8]) -> Bool?
  ) -> String? {
    let client = trust.flatMap { TLSClient(name, $0, protocols: protocols ?? [], resumes: false) }
    guard let loop = try? EventLoop(), client != nil || protocols == nil else { return "not tried: no memory" }
    var objection: String? = "no answer within \(EncryptedTrial.time.components.seconds) s"
    var stream: ByteStream?
    var octets: [UInt8] = []
    var hasEnded = false
    func end(_ reason: String?) {
      if !hasEnded { objection = reason }
      hasEnded = true
      loop.stop()
    }
    let timer = OwnedTimer()
    timer.set(after: EncryptedTrial.time, on: loop) { loop.stop() }
    let buffer = ReadBuffer(capacity: 16_384)
    let connector = Connector(to: [address], within: EncryptedTrial.time, userTimeout: EncryptedTrial.time, on: loop) {
      result in
      switch result {
      case .failure(let failure): end("no connection: \(String(cString: strerror(failure.systemError)))")
      case .success((let descriptor, _)):
        let connection = client?.connection(over: descriptor)
        guard connection != nil || protocols == nil else { return end("\"\(name)\" is no name for TLS") }
        stream = ByteStream(descriptor, connection, into: buffer, on: loop) { report in
          switch report {
          case .connected:
            if let first = protocols?.first, connection?.chosenProtocol != first {
              return end("it does not choose \(first) (ALPN)")
            }
            guard let request else { return end(nil) }
            stream?.write(request)
          case .octets(let some):
            octets += some
            if let isAnswer = judge(octets) { end(isAnswer ? nil : "what it answers is no answer") }
          case .ended(let failure): end(text(failure, isPlain: protocols == nil))
          case .readTurnEnded, .drained, .inputEnded: break
          }
        }
      }
    }
    withExtendedLifetime((connector, timer)) { loop.run() }
    stream?.close()
    return objection
  }

  /// What a failure means to who runs the listener.
  private func text(_ failure: StreamFailure, isPlain: Bool) -> String {
    switch failure {
    case .closed where isPlain, .system where isPlain:
      "it closes the connection without an answer: is this machine in encrypted.allow?"
    case .handshake(.otherName): "the certificate is not for \(name); clients refuse it"
    case .handshake(.certificate(let reason, isUntrusted: true)):
      "clients do not trust the certificate: \(reason); certificate_file must have the whole chain, and end at an authority "
        + "that they know"
    case .handshake(.certificate(let reason, isUntrusted: false)): "clients refuse the certificate: \(reason)"
    case .handshake(.error(let code)) where !TLSFailure.error(code).isClosed:
      "the handshake fails: \(TLSFailure.reason(of: code))"
    case .handshake(.error), .handshake(.closed), .system:
      "it closes the connection before TLS: is this machine in encrypted.allow?"
    case .closed, .tls, .timeout: "it closes the connection without an answer"
    }
  }
}
