// RefreshingResolver.swift -- what the refresher asks of the resolver.

import DNSWire
import HTTPDNS
import MessageCache

/// A question and the number of its route, which stays valid over reloads.
package struct RoutedQuestion: Hashable, Sendable {
  package var question: HTTPDNSQuestion
  package var route: UInt16
  /// The client's subnet if the answer may depend on it; `question.clientSubnet` is the same subnet.
  package var subnet: QueryClientSubnet

  package init(question: HTTPDNSQuestion, route: UInt16, subnet: QueryClientSubnet = QueryClientSubnet()) {
    self.question = question
    self.route = route
    self.subnet = subnet
  }
}

package struct RefreshedQuestion: Sendable {
  package var asked: RoutedQuestion
  /// The hash of its key in the cache.
  var hash: UInt64
  /// The heat of its new entry.
  package var heat: Heat
  /// When its entry was stored; nil if it has none, or if that does not matter.
  var storedAt: Int64?
}

/// The upstream that a refresh asks.
package struct RefreshSource {
  var source: EntrySource
  /// The maximum number of names per transfer; 0 if each question travels alone.
  var mostNames: Int
  /// Which address families a transfer has.
  var families: TransferFamilies

  package init(_ source: EntrySource, mostNames: Int, families: TransferFamilies = .wanted) {
    self.source = source
    self.mostNames = mostNames
    self.families = families
  }
}

/// Which daemon of a fleet makes a refresh.
package enum RefreshTurn {
  /// None: another daemon's answer was stored in the cache.
  case adopted
  /// This daemon.
  case ours
  /// Another daemon.
  case theirs
}

/// What the refresher asks of the resolver, on whose loop it runs.
package protocol RefreshingResolver: Actor {
  /// Schedules what the resolver stores.
  var refresher: Refresher? { get set }

  /// The hash of the question's key in the cache.
  func keyedHash(of asked: RoutedQuestion) -> UInt64

  /// The scope of the question's key on the current network; nil if its route no longer exists.
  func scope(of asked: RoutedQuestion) -> CacheScope?

  /// The upstream that a refresh asks for an answer of `source`; nil if none may be asked now.
  func refreshSource(_ asked: RoutedQuestion, after source: EntrySource) -> RefreshSource?

  /// The cost of a refresh from that source.
  func refreshPrice(of source: EntrySource) -> RefreshPrice

  /// Asks a source for new answers, all in one transfer. LocalDNS is asked one question.
  ///
  /// - Returns: for each question, whether it has a new answer or is in flight already.
  func refresh(_ questions: [RefreshedQuestion], from source: EntrySource) async -> [Bool]

  /// Resolves a question as for a client, with retries and fallback.
  ///
  /// - Returns: whether it has a new answer.
  func askAgain(_ asked: RoutedQuestion) async -> Bool

  /// Whether refreshes are coordinated with other daemons.
  var sharesRefreshes: Bool { get }

  /// Looks up an answer that expires later than the cached one. If there is none, requests the lease for the refresh.
  ///
  /// - Parameters:
  ///   - expiresAt: when the cached answer expires, in nanoseconds; nil if there is none.
  ///   - mayWait: whether the caller can wait for another daemon's refresh.
  func turn(toRefresh wanted: RefreshedQuestion, expiresAt: Int64?, mayWait: Bool) async -> RefreshTurn

  /// Releases the lease of a refresh that has ended or was not made, so that other daemons can refresh.
  func releaseLease(of asked: RoutedQuestion)
}
