// Simulator.swift -- connects the servers, the dialects, the faults and the record.
//
// Loop thread only. Each request passes these steps: select the dialect, compose its reply, apply a fault, record,
// send.

import EventLoop
import Glibc
import HTTPMessage
import HTTPServer
import Streams

/// The running service.
final class Simulator {
  /// The state that dialects use.
  var service: Service
  /// The active faults.
  var faults: FaultTable
  var record: RequestRecord

  private let loop: EventLoop
  private let startZone: Zone
  private let startOptions: ServiceOptions
  private var servers: [HTTPServer] = []
  /// Replies that are sent later.
  private let delays = TimerGroup()
  private var controlServers: [HTTPServer] = []

  init(on loop: EventLoop, service: Service, faults: FaultTable, recordLimit: Int) {
    self.loop = loop
    self.service = service
    self.faults = faults
    record = RequestRecord(limit: recordLimit)
    startZone = service.zone
    startOptions = service.options
  }

  /// The number of connections that the service's addresses have accepted, without those of control addresses.
  var connectionCount: UInt64 { servers.reduce(0) { $0 + $1.connectionCount } }

  /// Serves every dialect and the control paths on an address.
  ///
  /// - Returns: the address with its actual port.
  func serve(on address: SocketAddress, tls: TLSServer? = nil) throws(HTTPServerError) -> SocketAddress {
    let isSecure = tls != nil
    let server = makeServer(tls: tls) { [weak self] in self?.receive($0, $1, isSecure: isSecure) }
    servers.append(server)
    let bound = try server.listen(on: address)
    if isSecure { service.secureAddresses.append(bound) } else { service.plainAddresses.append(bound) }
    return bound
  }

  /// Serves only the control paths on an address.
  func serveControl(on address: SocketAddress) throws(HTTPServerError) -> SocketAddress {
    try makeControlServer().listen(on: address)
  }

  /// Serves only the control paths on a Unix socket.
  func serveControl(unixPath: String) throws(HTTPServerError) { try makeControlServer().listen(unixPath: unixPath) }

  func restoreZone() { service.zone = startZone }

  func restoreSettings() { service.options = startOptions }

  private func makeServer(
    tls: TLSServer?, _ handler: @escaping HTTPServer.Handler
  ) -> HTTPServer {
    var limits = HTTPServer.Limits()
    limits.headerOctets = 16_384  // a batch of names is in the target
    limits.bodyOctets = 16_777_216  // a zone file may be sent
    return HTTPServer(on: loop, limits: limits, tls: tls, handler: handler)
  }

  private func makeControlServer() -> HTTPServer {
    let server = makeServer(tls: nil) { [weak self] in self?.control($0, $1) }
    controlServers.append(server)
    return server
  }

  private func receive(_ request: HTTPServerRequest, _ reply: HTTPServerReply, isSecure: Bool) {
    guard !isControl(request) else { return control(request, reply) }
    var transfer = DialectRequest(request, now: loop.wallTime + service.options.clockOffset, isSecure: isSecure)
    guard let dialect = allDialects.first(where: { $0.claims(transfer) }) else {
      let refusal = DialectReply.refusal(404, "no dialect has this path")
      note(refusal, of: transfer, dialect: nil, fault: nil)
      return send(refusal, reply)
    }
    var answer = dialect.reply(to: transfer, from: service)
    let fault = faults.take(path: request.path, dialect: dialect.name, questions: answer.questions)
    if let fault {
      if let distortion = fault.distortion {
        transfer.distortion = distortion
        answer = dialect.reply(to: transfer, from: service)
      }
      answer = answer.spoiled(by: fault)
    }
    note(answer, of: transfer, dialect: dialect.name, fault: fault?.kind)
    deliver(answer, reply, fault)
  }

  private func deliver(_ answer: DialectReply, _ reply: HTTPServerReply, _ fault: Fault?) {
    guard let fault else { return send(answer, reply) }
    let finish: () -> Void = { [weak self] in
      switch fault.kind {
      case .stall: reply.holdUntilPeerCloses()
      case .reset: reply.reset()
      default: self?.send(answer, reply)
      }
    }
    if fault.delay > .zero {
      // `.now` and not the loop's time, which is that of the start of the turn and may precede a long wait for this request.
      delays.add(at: .now + fault.delay, on: loop, finish)
    } else {
      finish()
    }
  }

  private func send(_ answer: DialectReply, _ reply: HTTPServerReply) {
    var fields = answer.fields
    fields.append(HTTPField("Content-Type", answer.contentType))
    let clockOffset = service.options.clockOffset
    if clockOffset != 0 { fields.append(HTTPField("Date", httpDate(loop.wallTime + clockOffset))) }
    reply.send(status: answer.status, fields: fields, body: answer.body)
  }

  private func note(_ answer: DialectReply, of transfer: DialectRequest, dialect: String?, fault: Fault.Kind?) {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var reply = answer
    reply.body = []
    record.note(
      RecordedRequest(
        milliseconds: Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000, transfer: transfer, reply: reply,
        dialect: dialect, fault: fault))
  }
}

/// The value of a Date field (RFC 9110 section 5.6.7).
func httpDate(_ seconds: Int64) -> String {
  var time = time_t(seconds)
  var parts = tm()
  gmtime_r(&time, &parts)
  var text = [CChar](repeating: 0, count: 40)
  let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
  return String(decoding: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
}
