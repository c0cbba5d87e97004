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
    let (type, group) = (fetch.question.type, group(of: fetch.asked))
    let confined = answer.confined(to: fetch.question) { name in
      // Below a search domain, the providers may have addresses for names other than the one that they said NXDOMAIN
      // for.
      guard let number = route(of: name, type, from: group),
        [fetch.route.number, fetch.route.hostsNamesOf, Route.Number.network].contains(number),
        let route = fetch.configuration.route(number)
      else { return false }
      return route.isConfined && route.providers.isEmpty
    }
    if confined.answers != answer.answers { fetch.trace(TrailStep("LocalDNS", "its alias leads out of the network")) }
    return confined
  }

  /// The route of the name's A records; nil if the daemon itself answers for them.
  func ipv4Route(of asked: ResolverQuestion) -> UInt16? {
    table == nil ? asked.route.number : route(of: asked.question.name, .a, from: group(of: asked))
  }

  /// The class of the clients that the question is for, as far as its route shows: the first one that has this route.
  private func group(of asked: ResolverQuestion) -> Int {
    let groups = 0..<(table?.classes.count ?? 0)
    let (name, type, number) = (asked.question.name, asked.question.type, asked.route.number)
    return groups.first { route(of: name, type, from: $0) == number } ?? ClientClasses.none
  }

  private func route(of name: DomainName, _ type: RecordType, from group: Int) -> UInt16? {
    let decision = name.lowercased.octets.withUnsafeBufferPointer { octets in
      table?.find(octets.baseAddress!, length: octets.count, type: type.rawValue, from: group).decision
    }
    guard case .route(let number)? = decision else { return nil }
    return number
  }
}
