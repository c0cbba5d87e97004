// HTTP2Stream.swift -- one request and its response on an HTTP/2 connection.

import CHTTP2
import Glibc
import HTTPMessage

/// A stream. Its connection owns it until nghttp2 reports its end; its transfer reuses it for the next request.
final class HTTP2Stream {
  /// How a stream ended.
  enum End {
    /// The response is whole.
    case response
    /// The server did not process the request (RFC 9113 section 8.7).
    case notProcessed
    /// There is no response.
    case failure(HTTPFailure)
  }

  /// The connection that carries it, or has done so until it was lost; nil before and after.
  private(set) unowned var connection: HTTP2Connection?
  /// The transfer; nil if that has ended before its stream.
  private(set) var transfer: Transfer?
  var number: Int32 = 0
  /// The index in its connection's list.
  var position = 0
  /// The status of the last header section; 0 before the first one.
  private(set) var status = 0
  /// Whether the request, or its beginning, is on its way.
  private(set) var wasSent = false
  /// Whether nghttp2 has ended it.
  var isClosed = false
  /// Whether anything of a response has arrived.
  var hasResponse: Bool { status != 0 }

  /// What nghttp2 reads until the request is written.
  private var fields: RequestFields?
  private var content: [UInt8] = []
  private var sent = 0
  private var isInTrailers = false
  /// Whether the server has ended the response (END_STREAM).
  private var isWhole = false

  /// Prepares the object for its next request.
  func begin(_ transfer: Transfer, on connection: HTTP2Connection) {
    self.transfer = transfer
    self.connection = connection
    fields = transfer.fields
    content = transfer.request.body
    (sent, status, isInTrailers, isWhole, isClosed, wasSent) = (0, 0, false, false, false, false)
  }

  /// Gives the request to a session.
  ///
  /// - Returns: the stream's number, or an error code of nghttp2.
  func submit(to session: OpaquePointer) -> Int32 {
    guard let transfer, let fields else { return NGHTTP2_ERR_INVALID_ARGUMENT.rawValue }
    return fields.submit(transfer.request, session, stream: Unmanaged.passUnretained(self).toOpaque())
  }

  /// Forgets transfer and connection.
  func end() {
    transfer = nil
    connection = nil
    content = []
  }

  /// Forgets the transfer, which has ended; nghttp2 still knows the stream.
  func leaveTransfer() { transfer = nil }

  /// nghttp2 has composed the request.
  func requestLeaves() { wasSent = true }

  /// A header section begins: an interim response, the response, or what follows its content.
  func sectionBegan() { isInTrailers = status >= 200 }

  /// Takes one header field. Returns false if the response cannot be accepted, which the transfer then knows.
  func received(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
    guard let transfer else { return true }
    // What follows the content says nothing, but takes its time.
    guard !isInTrailers else { return transfer.note(headersFit: transfer.headers.skip(name.count + value.count)) }
    if name.hasPrefix(":status") {
      status = Int(value.number(from: 0) ?? 0)
      transfer.headers.beginSection(httpVersion: 2)
    }
    return transfer.note(headersFit: transfer.headers.take(name, value))
  }

  /// Takes content. Returns false if the response cannot be accepted, which the transfer then knows.
  func received(_ octets: UnsafeBufferPointer<UInt8>) -> Bool { transfer?.received(octets) ?? true }

  /// The server has ended the response.
  func endArrived() { isWhole = true }

  /// Copies a part of the request's content.
  ///
  /// - Returns: the number of octets, and whether they are the last.
  func takeContent(_ room: UnsafeMutableBufferPointer<UInt8>) -> (count: Int, isLast: Bool) {
    let count = min(room.count, content.count - sent)
    _ = room.update(fromContentsOf: content[sent..<sent + count])
    sent += count
    return (count, sent == content.count)
  }

  /// How the stream ended, by the code in its last frame.
  func end(_ code: UInt32) -> End {
    if let refusal = transfer?.refusal { return .failure(refusal) }
    switch code {
    // A server that has responded may reset the stream because it needs no more of the request (RFC 9113 section 8.1).
    case UInt32(NGHTTP2_NO_ERROR.rawValue) where isWhole: return .response
    case UInt32(NGHTTP2_REFUSED_STREAM.rawValue): return .notProcessed
    case UInt32(NGHTTP2_ENHANCE_YOUR_CALM.rawValue):
      transfer?.heardCalm = true
      return .failure(.calm)
    default:
      let name = String(cString: nghttp2_http2_strerror(code))
      return .failure(HTTPFailure(.reset, "the HTTP/2 stream ended with \(name)"))
    }
  }
}

/// nghttp2's callback for the content of a request.
func streamWantsContent(
  _: OpaquePointer?, _: Int32, _ room: UnsafeMutablePointer<UInt8>?, _ count: Int,
  _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
  _: UnsafeMutableRawPointer?
) -> Int {
  let stream = Unmanaged<HTTP2Stream>.fromOpaque(source!.pointee.ptr).takeUnretainedValue()
  let (taken, isLast) = stream.takeContent(UnsafeMutableBufferPointer(start: room, count: count))
  if isLast { flags!.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue) }
  return taken
}
