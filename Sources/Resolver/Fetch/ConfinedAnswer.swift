// ConfinedAnswer.swift -- removes records of other names from the answers of the network's resolver.
//
// See docs/adr/0024-the-network-answers-for-its-names.md. A cache behind this daemon may store each record under its
// owner: with an alias that leads out of the network, the network's resolver could set the addresses of public names
// there.

import DNSWire
import HTTPDNS
import Routing
import Upstreams

extension HTTPDNSAnswer {
  /// Returns the answer without records of names that are not the network's own.
  ///
  /// If an alias leads to such a name, the records at the end of the chain get the last name before it as their owner,
  /// without signatures. If there are none, the answer becomes NODATA, since a name that is an alias exists.
  ///
  /// - Parameter isOwn: whether a name is the network's own; called for the targets of aliases only, since QNAME is.
  /// - Complexity: O(records)
  func confined(to question: HTTPDNSQuestion, _ isOwn: (DomainName) -> Bool) -> HTTPDNSAnswer {
    guard question.type != .cname else { return withoutRedirections(to: question) }
    var confined = self
    confined.answers = []
    var (owner, longest, hasLeft) = (question.name, UInt32.max, false)
    for var record in answers {
      switch record.type {
      // The answer also contains the CNAME records that follow from it.
      case .dname where question.type != .dname: continue
      case .cname:
        hasLeft = hasLeft || !(DomainName(octets: record.rdata).map(isOwn) ?? false)
        guard hasLeft else {
          owner = DomainName(octets: record.rdata) ?? owner
          break
        }
        longest = min(longest, record.ttl)
        continue
      case .rrsig where question.type != .rrsig:
        guard !hasLeft, !record.covers(.dname) else { continue }
      default:
        guard hasLeft else { break }
        record.owner = owner
        record.ttl = min(record.ttl, longest)
      }
      confined.answers.append(record)
    }
    guard hasLeft else { return confined }
    confined.isAuthenticated = false
    // They are about the end of the chain, outside the network.
    confined.authorities = []
    confined.responseCode = .noError
    return confined
  }

  private func withoutRedirections(to question: HTTPDNSQuestion) -> HTTPDNSAnswer {
    var answer = self
    answer.answers.removeAll { $0.owner != question.name }
    return answer
  }
}

extension ResourceRecord {
  /// Whether it is a signature over records of that type (RFC 4034 section 3.1.1).
  fileprivate func covers(_ type: RecordType) -> Bool {
    rdata.count >= 2 && UInt16(rdata[0]) << 8 | UInt16(rdata[1]) == type.rawValue
  }
}

extension AnswerComposer {
  /// LocalDNS's answer, confined to the network's names if the route requires it.
  func confined(_ answer: HTTPDNSAnswer, _ fetch: Fetch) -> HTTPDNSAnswer {
    guard fetch.route.isConfined else { return answer }
    let type = fetch.question.type.rawValue
    let confined = answer.confined(to: fetch.question) { name in
      // Below a search domain, the providers may have addresses for names other than the one that they said NXDOMAIN
      // for.
      guard let number = route(of: name, type),
        [fetch.route.number, fetch.route.hostsNamesOf, Route.Number.network].contains(number),
        let route = fetch.configuration.route(number)
      else { return false }
      return route.isConfined && route.providers.isEmpty
    }
    if confined.answers != answer.answers { fetch.trace(TrailStep("LocalDNS", "its alias leads out of the network")) }
    return confined
  }

  /// The route of the name's A records; nil if the daemon itself answers for them. A question with the route of some
  /// clients stays on it: who asks is not known here.
  func ipv4Route(of asked: ResolverQuestion) -> UInt16? {
    let (name, type) = (asked.question.name, asked.question.type)
    guard table != nil, route(of: name, type.rawValue) == asked.route.number else { return asked.route.number }
    return route(of: name, RecordType.a.rawValue)
  }

  private func route(of name: DomainName, _ type: UInt16) -> UInt16? {
    let decision = name.lowercased.octets.withUnsafeBufferPointer { octets in
      table?.find(octets.baseAddress!, length: octets.count, type: type)
    }
    guard case .route(let number)? = decision else { return nil }
    return number
  }
}
