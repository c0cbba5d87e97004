// HTTP2Exchange.swift -- a request over HTTP/2 and its answer.

import CHTTP2
import Glibc
import HTTPMessage

/// A request and its answer. Its server uses the object again for another request, which has another `number`: who answers
/// later compares it.
public final class HTTP2Exchange {
  /// Identifies the request among all of the server.
  public internal(set) var number: UInt64 = 0
  /// A number of the handler's; 0 at first.
  public var tag = 0
  /// The connection; nil when the exchange is over.
  public private(set) unowned(unsafe) var connection: HTTP2ServerConnection?
  /// Whether the handler has given its answer, which may not have left yet.
  private(set) var isAnswered = false
  /// Whether it can still be answered.
  public var isPending: Bool { connection != nil && !isAnswered }
  /// Whether the client has sent all of the request.
  var isWhole = false
  /// Whether the client waits for the answer.
  var isAwaited = false
  /// Whether nghttp2 has written the body of the answer.
  private(set) var isSent = false
  /// Octets of the answer's body that nghttp2 has not written.
  var unwritten: Int { answer.count - sent }
  /// The number of its stream.
  private(set) var stream: Int32 = 0

  // The head, until it is handled.
  var method = HeadPart()
  var target = HeadPart()
  var host = HeadPart()
  var contentType = HeadPart()
  var contentLength: Int?
  var fields = 0
  var headOctets = 0
  var isTooLarge = false
  /// Whether the answer has no body (RFC 9110 section 9.3.2).
  var isHead = false
  /// The values so far, while other connections may use the shared buffer.
  var partialHead: [UInt8]?

  /// The most octets of a body that the handler takes; nil for none.
  var bodyLimit: Int?
  private(set) var body: [UInt8] = []
  /// Octets of the body for which the client has not got new room.
  var unconsumed = 0
  /// Octets of the body that the handler has not taken.
  var dropped = 0
  private var answer: [UInt8] = []
  private var sent = 0

  /// Buffers above this size are not kept for the next request.
  private static let keptCapacity = 4096

  /// Prepares the object for its next request.
  func begin(on connection: HTTP2ServerConnection, _ stream: Int32) {
    self.connection = connection
    self.stream = stream
    (tag, isAnswered, isSent, isWhole, isAwaited) = (0, false, false, false, false)
    (isTooLarge, isHead) = (false, false)
    (method, target, host, contentType, contentLength) = (HeadPart(), HeadPart(), HeadPart(), HeadPart(), nil)
    (fields, headOctets, bodyLimit, unconsumed, dropped, sent) = (0, 0, nil, 0, 0, 0)
  }

  /// Forgets the connection and large buffers.
  func end() {
    connection = nil
    partialHead = nil
    HTTP2Exchange.clear(&body)
    HTTP2Exchange.clear(&answer)
    sent = 0
  }

  func add(toBody octets: UnsafeBufferPointer<UInt8>) { body.append(contentsOf: octets) }

  private static func clear(_ buffer: inout [UInt8]) {
    if buffer.capacity > keptCapacity { buffer = [] } else { buffer.removeAll(keepingCapacity: true) }
  }

  /// Sends the answer, with Date and Content-Length. Does nothing if there was one, or if the request is over.
  ///
  /// - Parameters:
  ///   - cacheControl: the value of Cache-Control; empty for none.
  ///   - field: one more field, with its name in lower case.
  ///   - body: copied.
  public func answer(
    status: Int, contentType: StaticString, cacheControl: UnsafeBufferPointer<UInt8> = .init(start: nil, count: 0),
    field: (name: String, value: String)? = nil, body: UnsafeBufferPointer<UInt8>
  ) {
    guard let connection, !isAnswered else { return }
    isAnswered = true
    isSent = isHead
    if !isHead { answer.append(contentsOf: body) }
    connection.server.withDate { date in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2 * DecimalDigits.longest) { digits in
        let statusEnd = DecimalDigits.write(status, to: digits)
        let lengthEnd = DecimalDigits.write(body.count, to: digits, at: statusEnd)
        withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: 6) { list in
          var count = 0
          func add(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>) {
            name.withUTF8Buffer {
              list.initializeElement(
                at: count,
                to: chttp2_field(
                  UnsafeRawPointer($0.baseAddress!).assumingMemoryBound(to: CChar.self), $0.count, value.baseAddress,
                  value.count))
            }
            count += 1
          }
          add(":status", UnsafeBufferPointer(rebasing: UnsafeBufferPointer(digits)[..<statusEnd]))
          contentType.withUTF8Buffer { add("content-type", $0) }
          add("content-length", UnsafeBufferPointer(rebasing: UnsafeBufferPointer(digits)[statusEnd..<lengthEnd]))
          if !cacheControl.isEmpty { add("cache-control", cacheControl) }
          add("date", date)
          guard let field else { return connection.submit(self, list, count) }
          // Rare: a refusal.
          Array(field.name.utf8).withUnsafeBufferPointer { name in
            Array(field.value.utf8).withUnsafeBufferPointer { value in
              list.initializeElement(
                at: count,
                to: nghttp2_nv(
                  name: UnsafeMutablePointer(mutating: name.baseAddress),
                  value: UnsafeMutablePointer(mutating: value.baseAddress),
                  namelen: name.count, valuelen: value.count, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
              connection.submit(self, list, count + 1)
            }
          }
        }
      }
    }
  }

  /// Copies the next octets of the answer's body for nghttp2; returns their number, and whether they are the last ones.
  fileprivate func read(into buffer: UnsafeMutablePointer<UInt8>, _ length: Int) -> (count: Int, isLast: Bool) {
    let count = min(length, answer.count - sent)
    answer.withUnsafeBufferPointer { if let base = $0.baseAddress { buffer.update(from: base + sent, count: count) } }
    sent += count
    connection?.wrote(count)
    return (count, sent == answer.count)
  }

  /// nghttp2's source of the body.
  var provider: nghttp2_data_provider {
    nghttp2_data_provider(
      source: nghttp2_data_source(ptr: Unmanaged.passUnretained(self).toOpaque()),
      read_callback: { _, _, buffer, length, flags, source, _ in
        let exchange = Unmanaged<HTTP2Exchange>.fromOpaque(source!.pointee.ptr).takeUnretainedValue()
        let (count, isLast) = exchange.read(into: buffer!, length)
        if isLast {
          flags!.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
          exchange.isSent = true
        }
        return count
      })
  }
}
