// ReportBatch.swift -- parses the body of `POST /report`: reports of programs about addresses.
//
//   {"reports":[{"name":"www.example.com","address":"192.0.2.1","result":"ok","ms":23}]}

import DNSWire
import JSON
import Ranking

/// The reports of one request.
package struct ReportBatch: Hashable, Sendable {
  /// Maximum reports in one request, and maximum octets of its body.
  package static let (mostReports, mostOctets) = (100, 16_384)
  /// The longest round trip in milliseconds.
  private static let longest: UInt32 = 3_600_000

  /// Why a body is refused.
  package struct Refusal: Error, Hashable {
    /// The reason in one line, human-readable.
    package let reason: String
  }

  /// The reports in the order of the body.
  package let reports: [AddressReport]

  init(_ reports: [AddressReport]) { self.reports = reports }

  /// Parses a body. One malformed report makes the whole body invalid.
  package init(_ body: [UInt8]) throws(Refusal) {
    guard body.count <= ReportBatch.mostOctets else {
      throw Refusal(reason: "\(body.count) octets; at most \(ReportBatch.mostOctets)")
    }
    reports = try withJSON(body, orThrow: { _ in Refusal(reason: "the body is not JSON") }, ReportBatch.read(_:))
  }

  private static func read(_ root: JSONValue) throws(Refusal) -> [AddressReport] {
    guard let list = root["reports"], list.isArray, list.count > 0 else {
      throw Refusal(reason: "\"reports\" is not an array with at least one report")
    }
    guard list.count <= mostReports else {
      throw Refusal(reason: "\(list.count) reports; at most \(mostReports) at once")
    }
    var reports: [AddressReport] = []
    for (index, item) in list.elements.enumerated() { reports.append(try report(item, "reports[#\(index + 1)]")) }
    return reports
  }

  private static func report(_ item: JSONValue, _ place: String) throws(Refusal) -> AddressReport {
    guard let text = item["name"]?.text, let name = DomainName(text: text) else {
      throw Refusal(reason: "\(place).name: not a domain name")
    }
    guard let text = item["address"]?.text, let address = IPAddress(text: text) else {
      throw Refusal(reason: "\(place).address: not an IP address")
    }
    var milliseconds: Int?
    if let time = item["ms"] {
      guard let number = time.number(upTo: longest) else {
        throw Refusal(reason: "\(place).ms: not an integer from 0 to \(longest)")
      }
      milliseconds = Int(number)
    }
    let result: AddressReport.Result
    switch item["result"]?.text {
    case "ok": result = .works(milliseconds: milliseconds)
    case "failed" where milliseconds != nil: throw Refusal(reason: "\(place).ms: only with \"result\": \"ok\"")
    case "failed": result = .failed
    default: throw Refusal(reason: "\(place).result: expected \"ok\" or \"failed\"")
    }
    return AddressReport(name: name.lowercased, address: address, result: result)
  }
}

/// The outcome of a request with reports.
package enum ReportOutcome: Hashable, Sendable {
  /// For `counted` reports a cached answer to the name has the address, for `unknown` reports no cached answer has it.
  case taken(counted: Int, unknown: Int)
  /// `ranking.reports` is false, or there is no cache.
  case off
  /// More than 100 reports within a second.
  case tooMany

  /// The status code of the HTTP response.
  package var status: Int {
    switch self {
    case .taken: 200
    case .off: 403
    case .tooMany: 429
    }
  }

  /// The outcome in one line, human-readable.
  package var line: String {
    switch self {
    case .taken(let counted, 0): "\(counted) \(counted == 1 ? "report" : "reports") counted"
    case .taken(let counted, let unknown):
      "\(counted) of \(counted + unknown) reports counted; for the \(unknown == 1 ? "other" : "others"), no cached "
        + "answer to the name has the address"
    case .off: "reports are off: ranking.reports is false, or there is no cache"
    case .tooMany: "more than 100 reports in a second"
    }
  }

  /// The outcome as a JSON object.
  package var json: String {
    guard case .taken(let counted, let unknown) = self else { return JSONText.object(["counted": "0"]) }
    return JSONText.object(["counted": "\(counted)", "unknown": "\(unknown)"])
  }
}
