// NameCounts.swift -- what has come of the questions for one name and type, by the names that Alibaba's SDKs have for it.

/// What came of asking a provider one question.
public enum AskedOutcome: Hashable, Sendable {
  /// An answer in the words of DNS, be it a negative one or SERVFAIL.
  case answer
  /// Nothing in time.
  case timeout
  /// No connection, a broken one, a server's error, or a reply that is no answer.
  case noResponse
  /// The provider refuses the credentials or the account, or its quota is used up.
  case noPermission
  /// The provider refuses the parameters, or the name.
  case badParameter
  /// The provider does not know the path.
  case badPath
}

/// Counters of one name and type, as PDNS's `getRequestReportInfo` has them, spelling included.
public struct NameCounts: Equatable, Sendable {
  /// Times that a provider was asked, each transfer that carried the question, refreshes and probes among them.
  public private(set) var requestPDnsNum: UInt64 = 0
  /// Those that brought an answer.
  public private(set) var successNum: UInt64 = 0
  /// Those that brought nothing in time.
  public private(set) var timeoutErro: UInt64 = 0
  /// Those without a response of any use.
  public private(set) var noResponseErro: UInt64 = 0
  /// Those that the provider refused for who asked, or because the quota was used up.
  public private(set) var noPermissionErro: UInt64 = 0
  /// Those that the provider refused for their parameters.
  public private(set) var urlParameterErro: UInt64 = 0
  /// Those that the provider refused for their path.
  public private(set) var urlPathErro: UInt64 = 0
  /// Times that LocalDNS was asked in a provider's place.
  public private(set) var gobackLocaldnsNum: UInt64 = 0
  /// Times that it was this side that failed: our own limits, or LocalDNS in a provider's place.
  public private(set) var localErro: UInt64 = 0
  /// Queries that the cache answered.
  public var cacheDnsNum: UInt64 = 0
  /// The longest time that a response took, in nanoseconds.
  public private(set) var maxRtt: Int64 = 0
  private var rttSum: Int64 = 0
  private var rttCount: UInt64 = 0

  /// Nothing.
  public init() {}

  /// How long a response took on average, in nanoseconds; 0 where there was none.
  public var avgRtt: Int64 { rttCount == 0 ? 0 : rttSum / Int64(rttCount) }

  /// How busy the name is: its questions to providers and to LocalDNS, and its hits.
  public var activity: UInt64 { requestPDnsNum + gobackLocaldnsNum + cacheDnsNum }

  /// A transfer that carried the question has ended.
  ///
  /// - Parameter rtt: nanoseconds until the response; nil where there was none.
  public mutating func asked(_ outcome: AskedOutcome, rtt: Int64?) {
    requestPDnsNum += 1
    switch outcome {
    case .answer: successNum += 1
    case .timeout: timeoutErro += 1
    case .noResponse: noResponseErro += 1
    case .noPermission: noPermissionErro += 1
    case .badParameter: urlParameterErro += 1
    case .badPath: urlPathErro += 1
    }
    guard let rtt else { return }
    rttSum += rtt
    rttCount += 1
    if rtt > maxRtt { maxRtt = rtt }
  }

  /// A limit of ours stood in the way: nothing was sent.
  public mutating func wasRefusedHere() { localErro += 1 }

  /// LocalDNS was asked in a provider's place.
  public mutating func wentToLocalDNS(isAnswered: Bool) {
    gobackLocaldnsNum += 1
    if !isAnswered { localErro += 1 }
  }
}
