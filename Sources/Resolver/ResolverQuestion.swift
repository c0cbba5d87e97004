// ResolverQuestion.swift -- a question with what the resolver derives from it: configuration, route, cache key.

import DNSWire
import HTTPDNS
import MessageCache
import Refresh
import Upstreams

/// The octets of a cache key as a value. Two questions with equal keys share one fetch and one cache entry.
struct QuestionKey: Hashable, Sendable {
  let octets: [UInt8]
  /// The cache's hash of the octets.
  let keyedHash: UInt64

  init(_ key: CacheKey) {
    octets = Array(UnsafeBufferPointer(start: key.octets, count: key.length))
    keyedHash = key.hash
  }

  /// Calls `body` with the key in the form that the cache takes.
  func withCacheKey<Value>(_ body: (CacheKey) -> Value) -> Value {
    octets.withUnsafeBufferPointer { buffer in
      body(CacheKey(octets: buffer.baseAddress!, length: buffer.count, hash: keyedHash))
    }
  }

  static func == (left: QuestionKey, right: QuestionKey) -> Bool {
    left.keyedHash == right.keyedHash && left.octets == right.octets
  }

  func hash(into hasher: inout Hasher) { hasher.combine(keyedHash) }
}

/// A question under one configuration. `AnswerStore.question` makes it once for each query; immutable.
struct ResolverQuestion {
  /// The question as upstreams receive it, with the client's subnet if there is one.
  let question: HTTPDNSQuestion
  /// The configuration that `route` belongs to.
  let configuration: ResolverConfiguration
  /// The upstreams to ask, their order and limits.
  let route: Route
  /// The parts of the key other than name and subnet.
  let scope: CacheScope
  /// The client's subnet if it is part of the key, in the listener's form; otherwise none.
  let subnet: QueryClientSubnet
  /// The cache key.
  let key: QuestionKey

  /// Whether the answer may depend on the client's subnet.
  var hasSubnet: Bool { subnet.family != 0 }

  /// The scope of an answer for the client's subnet alone; nil if none is part of the key.
  var subnetScope: Int? { hasSubnet ? Int(subnet.sourceLength) : nil }

  /// Whether a provider gets the client's own subnet. The scope of an answer for another one says nothing about the client.
  func sendsItsSubnet(to upstream: any Upstream) -> Bool {
    upstream.subnet(for: question.clientSubnet).map { $0 == question.clientSubnet } ?? false
  }

  /// The scope of the entry that denies the name for every type.
  var nameErrorScope: CacheScope {
    var scope = scope
    scope.type = CacheKey.everyType
    return scope
  }

  /// The same question as a value that outlives a reload.
  var routed: RoutedQuestion { RoutedQuestion(question: question, route: route.number, subnet: subnet) }
}

extension QueryClientSubnet {
  /// The subnet as a prefix; nil without a subnet.
  var prefix: IPPrefix? {
    guard family != 0 else { return nil }
    var octets: [UInt8] = []
    withUnsafeBytes(of: high.bigEndian) { octets += $0 }
    withUnsafeBytes(of: low.bigEndian) { octets += $0 }
    return IPAddress(octets: octets[..<(family == 1 ? 4 : 16)]).flatMap { IPPrefix($0, length: Int(sourceLength)) }
  }
}
