// NameCounts.swift -- counters of one name and type, under the names of Alibaba's SDKs.

import HTTPDNS
import Upstreams

/// Counters of one name and type, with the names and spelling of PDNS's `getRequestReportInfo`.
package struct NameCounts: Equatable, Sendable {
  /// Transfers that carried the question, including refreshes and probes.
  package private(set) var requestPDnsNum: UInt64 = 0
  /// Transfers with an answer.
  package private(set) var successNum: UInt64 = 0
  /// Transfers without a response in time.
  package private(set) var timeoutErro: UInt64 = 0
  /// Transfers without a usable response.
  package private(set) var noResponseErro: UInt64 = 0
  /// Transfers that the provider refused because of the account or its quota.
  package private(set) var noPermissionErro: UInt64 = 0
  /// Transfers that the provider refused because of their parameters.
  package private(set) var urlParameterErro: UInt64 = 0
  /// Transfers that the provider refused because of their path.
  package private(set) var urlPathErro: UInt64 = 0
  /// Questions to LocalDNS instead of a provider.
  package private(set) var gobackLocaldnsNum: UInt64 = 0
  /// Failures on our side: our own limits, or LocalDNS instead of a provider.
  package private(set) var localErro: UInt64 = 0
  /// Queries answered from the cache.
  package var cacheDnsNum: UInt64 = 0
  /// The longest response time, in nanoseconds.
  package private(set) var maxRtt: Int64 = 0
  private var rttSum: Int64 = 0
  private var rttCount: UInt64 = 0

  package init() {}

  /// The mean response time in nanoseconds; 0 if there was no response.
  package var avgRtt: Int64 { rttCount == 0 ? 0 : rttSum / Int64(rttCount) }

  /// The activity of the name: its questions to providers and to LocalDNS, and its hits.
  package var activity: UInt64 { requestPDnsNum + gobackLocaldnsNum + cacheDnsNum }

  /// Counts a completed transfer.
  ///
  /// - Parameters:
  ///   - failure: the cause of a failure; nil for a DNS answer, including negative ones and SERVFAIL.
  ///   - rtt: nanoseconds until the response; nil if there was none.
  package mutating func asked(_ failure: TransferFailureCause?, rtt: Int64?) {
    requestPDnsNum += 1
    switch failure {
    case nil: successNum += 1
    case let failure? where failure.isLate: timeoutErro += 1
    case .noResponse, .slept: noResponseErro += 1
    case .noAnswer(.authentication), .noAnswer(.expired), .noAnswer(.account), .noAnswer(.quota): noPermissionErro += 1
    case .noAnswer(.badParameter), .noAnswer(.name): urlParameterErro += 1
    case .noAnswer(.badPath): urlPathErro += 1
    case .noAnswer(.server), .noAnswer(.unreadable), .noAnswer(.wrongQuestion), .noAnswer(.truncated),
      .noAnswer(.unsupported):
      noResponseErro += 1
    }
    guard let rtt else { return }
    rttSum += rtt
    rttCount += 1
    if rtt > maxRtt { maxRtt = rtt }
  }

  /// Counts a question that was not sent because of our own limits.
  package mutating func wasRefusedHere() { localErro += 1 }

  /// Counts a question to LocalDNS instead of a provider.
  package mutating func wentToLocalDNS(isAnswered: Bool) {
    gobackLocaldnsNum += 1
    if !isAnswered { localErro += 1 }
  }
}
