// TencentReply.swift -- parses the text of Tencent's replies: names, addresses and TTLs between punctuation.

import DNSWire

/// A decrypted reply with one line per name (cloud.tencent.com/document/product/379/95497):
///
///     name.:address;address,TTL|client              A or AAAA
///     name.:address;address,TTL-address,TTL|client  both, IPv4 first
///
/// `name.:` is optional if the request has one name; `,TTL` and `|client` are always optional. No addresses are written
/// as `0`, as an empty text, or as a line with only the name.
struct TencentReply {
  /// The TTL in seconds of addresses without one: the minimum that the provider advises for caches.
  static let missingTTL: UInt32 = 60

  /// The text after a name, without the client's address.
  private enum Content {
    case missing
    case once(ArraySlice<UInt8>)
    case repeatedly
  }

  private let batch: QuestionBatch
  /// One entry per name of the batch.
  private var contents: [Content]
  /// Lines that do not begin with a name.
  private var unnamed: [ArraySlice<UInt8>] = []

  /// Parses the reply to a batch.
  ///
  /// - Parameter text: without leading and trailing white space.
  /// - Complexity: O(*n*) in the octets.
  init(_ text: ArraySlice<UInt8>, to batch: QuestionBatch) {
    self.batch = batch
    let empty: Content = text.isEmpty ? .once([]) : .missing
    contents = batch.names.map { _ in empty }
    var rest = text
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      let line = trimmed(rest[..<end])
      if !line.isEmpty { read(line) }
      rest = rest[end...].dropFirst()
    }
  }

  /// The answers to the questions of the batch, in their order.
  var answers: [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    batch.names.indices.flatMap { index in
      let families = families(of: index)
      return batch.types.indices.map { family in
        families.flatMap { families in
          Result { () throws(HTTPDNSFailure) in
            try answer(in: families[family], name: batch.names[index], type: batch.types[family])
          }
        }
      }
    }
  }

  private mutating func read(_ line: ArraySlice<UInt8>) {
    let text = line.prefix { $0 != UInt8(ascii: "|") }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else {
      if let index = index(of: text) { note([], for: index) } else { unnamed.append(text) }
      return
    }
    // The first colon may belong to an IPv6 address. Only a name has a dot before it.
    let name = text[..<colon]
    if name.contains(UInt8(ascii: ".")), let index = index(of: name) {
      note(text[(colon + 1)...], for: index)
    } else if name.last != UInt8(ascii: ".") {
      unnamed.append(text)
    }
  }

  private func index(of text: ArraySlice<UInt8>) -> Int? {
    text.withUnsafeBytes { text in batch.names.firstIndex { isPlainText(text, of: $0) } }
  }

  private mutating func note(_ content: ArraySlice<UInt8>, for index: Int) {
    if case .missing = contents[index] { contents[index] = .once(content) } else { contents[index] = .repeatedly }
  }

  /// The texts for a name, one per family of the batch.
  private func families(of index: Int) -> Result<[ArraySlice<UInt8>], HTTPDNSFailure> {
    let content: ArraySlice<UInt8>
    switch contents[index] {
    case .once(let text): content = text
    case .repeatedly: return .failure(.unreadable(.syntax))
    case .missing where unnamed.isEmpty: return .failure(.wrongQuestion)
    case .missing where batch.names.count == 1 && unnamed.count == 1: content = unnamed[0]
    case .missing: return .failure(.unreadable(.syntax))
    }
    guard !saysNothing(content) else { return .success(batch.types.map { _ in [] }) }
    guard batch.types.count > 1 else { return .success([content]) }
    let families = content.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    return families.count == batch.types.count ? .success(families) : .failure(.unreadable(.syntax))
  }

  /// Reads the addresses of one family and their TTL.
  private func answer(
    in text: ArraySlice<UInt8>, name: DomainName, type: RecordType
  ) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    let comma = text.firstIndex(of: UInt8(ascii: ",")) ?? text.endIndex
    let ttl = try ttl(in: text[comma...].dropFirst()) ?? TencentReply.missingTTL
    var list = text[..<comma]
    // The provider's iOS SDK accepts one extra semicolon.
    if list.last == UInt8(ascii: ";") { list.removeLast() }
    var reply = ProviderReply(responseCode: .noError)
    if !saysNothing(list) {
      for element in list.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false) {
        guard let octets = addressOctets(element, isIPv6: type == .aaaa) else {
          reply.leftOut = .unreadable(.rdata)
          continue
        }
        reply.answers.append(ResourceRecord(owner: name, type: type, ttl: ttl, rdata: octets))
      }
    }
    var answer = try reply.answer(to: HTTPDNSQuestion(name: name, type: type, clientSubnet: batch.clientSubnet))
    answer.isEmptyAmbiguous = answer.isNegative
    return answer
  }

  private func saysNothing(_ text: ArraySlice<UInt8>) -> Bool {
    text.isEmpty || text.count == 1 && text.first == UInt8(ascii: "0")
  }
}
