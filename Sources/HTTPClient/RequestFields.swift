// RequestFields.swift -- the header fields of requests, in the forms that libcurl and nghttp2 take.

import CCurl
import CHTTP2
import HTTPMessage

/// A list of libcurl's type, owned.
final class CurlList {
  /// The head; nil for an empty list.
  private(set) var head: UnsafeMutablePointer<curl_slist>?

  /// libcurl copies the lines.
  init(_ lines: [String]) { for line in lines { head = curl_slist_append(head, line) } }

  deinit { curl_slist_free_all(head) }
}

/// One array of header fields, in either library's form once that is needed: services that sign in a field have another
/// array in each request. nghttp2 reads the texts in place when it writes a request, so that a stream retains them.
final class RequestFields {
  let fields: [HTTPField]
  private let server: HTTPServerAddress
  /// The fields in libcurl's form.
  private(set) lazy var list = CurlList(fields.map { "\($0.name): \($0.value)" })
  private lazy var pairs = FieldPairs(fields, to: server)

  /// The fields have been checked.
  init(_ fields: [HTTPField], to server: HTTPServerAddress) { (self.fields, self.server) = (fields, server) }

  /// Gives a request to a session.
  ///
  /// - Returns: the stream's number, or an error code of nghttp2.
  func submit(_ request: HTTPRequest, _ session: OpaquePointer, stream: UnsafeMutableRawPointer) -> Int32 {
    pairs.submit(request, session, stream: stream)
  }
}

/// nghttp2's form: method and target first, the length of a POST's content last.
private final class FieldPairs {
  private let block: UnsafeMutableBufferPointer<nghttp2_nv>
  private let texts: UnsafeMutableBufferPointer<UInt8>

  private static let (method, path) = (0, 1)

  init(_ fields: [HTTPField], to server: HTTPServerAddress) {
    let host = fields.first { $0.name.lowercased() == "host" }?.value
    let authority =
      server.port == server.scheme.defaultPort ? server.authorityHost : "\(server.authorityHost):\(server.port)"
    var pairs = [
      (":method", ""), (":path", ""), (":scheme", server.scheme.rawValue), (":authority", host ?? authority),
    ]
    let others = fields.map { ($0.name.lowercased(), $0.value) }.filter { $0.0 != "host" }
    // As libcurl does.
    if !others.contains(where: { $0.0 == "accept" }) { pairs.append(("accept", "*/*")) }
    pairs += others
    pairs.append(("content-length", ""))
    texts = .allocate(capacity: pairs.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count })
    block = .allocate(capacity: pairs.count)
    var next = texts.baseAddress!
    func kept(_ text: String) -> UnsafeMutablePointer<UInt8> {
      defer { next += text.utf8.count }
      _ = UnsafeMutableBufferPointer(start: next, count: text.utf8.count).initialize(from: text.utf8)
      return next
    }
    for (index, (name, value)) in pairs.enumerated() {
      // nghttp2 copies the values that differ between requests.
      let isConstant = !value.isEmpty || index > FieldPairs.path && index < pairs.count - 1
      let copied = isConstant ? NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue : 0
      let flags = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | copied)
      let pair = nghttp2_nv(
        name: kept(name), value: kept(value), namelen: name.utf8.count, valuelen: value.utf8.count, flags: flags)
      block.initializeElement(at: index, to: pair)
    }
  }

  deinit {
    texts.deallocate()
    block.deallocate()
  }

  func submit(_ request: HTTPRequest, _ session: OpaquePointer, stream: UnsafeMutableRawPointer) -> Int32 {
    var target = request.target
    var method = request.method.rawValue
    return target.withUTF8 { path in
      method.withUTF8 { method in
        set(FieldPairs.path, path)
        set(FieldPairs.method, method)
        guard request.method == .post else {
          return nghttp2_submit_request(session, nil, block.baseAddress!, block.count - 1, nil, stream)
        }
        var length = String(request.body.count)
        return length.withUTF8 { length in
          set(block.count - 1, length)
          var content = nghttp2_data_provider()
          content.source.ptr = stream
          content.read_callback = streamWantsContent
          return nghttp2_submit_request(session, nil, block.baseAddress!, block.count, &content, stream)
        }
      }
    }
  }

  private func set(_ index: Int, _ value: UnsafeBufferPointer<UInt8>) {
    block[index].value = UnsafeMutablePointer(mutating: value.baseAddress)
    block[index].valuelen = value.count
  }
}
