// ReportBatch.swift -- reads the body of `POST /report`: what programs say about addresses.
//
//   {"reports":[{"name":"www.example.com","address":"192.0.2.1","result":"ok","ms":23}]}

import DNSWire
import HTTPDNS
import Ranking
import Telemetry

/// Reports of one request.
package struct ReportBatch: Hashable, Sendable {
  /// The most reports in one request, and the most octets of its body.
  package static let (mostReports, mostOctets) = (100, 16_384)
  /// The longest round trip in milliseconds.
  private static let longest: UInt32 = 3_600_000

  /// Why a body is refused: one line.
  package struct Refusal: Error, Hashable {
    /// The line.
    package let reason: String
  }

  /// The reports, in their order.
  package let reports: [AddressReport]

  init(_ reports: [AddressReport]) { self.reports = reports }

  /// Reads a body. One malformed report refuses all of them.
  package init(_ body: [UInt8]) throws(Refusal) {
    guard body.count <= ReportBatch.mostOctets else {
      throw Refusal(reason: "\(body.count) octets; at most \(ReportBatch.mostOctets)")
    }
    let read: Result<[AddressReport], Refusal>
    do throws(HTTPDNSFailure) {
      read = try withJSON(body) { root throws(HTTPDNSFailure) in ReportBatch.read(root) }
    } catch { throw Refusal(reason: "the body is not JSON") }
    reports = try read.get()
  }

  private static func read(_ root: JSONValue) -> Result<[AddressReport], Refusal> {
    guard let list = root["reports"], list.isArray, list.count > 0 else {
      return .failure(Refusal(reason: "\"reports\" is not an array with at least one report"))
    }
    guard list.count <= mostReports else {
      return .failure(Refusal(reason: "\(list.count) reports; at most \(mostReports) at once"))
    }
    var reports: [AddressReport] = []
    for (index, item) in list.elements.enumerated() {
      switch report(item) {
      case .success(let report): reports.append(report)
      case .failure(let fault): return .failure(Refusal(reason: "reports[#\(index + 1)].\(fault.reason)"))
      }
    }
    return .success(reports)
  }

  private static func report(_ item: JSONValue) -> Result<AddressReport, Refusal> {
    guard let text = item["name"]?.text, let name = DomainName(text: text) else {
      return .failure(Refusal(reason: "name: not a domain name"))
    }
    guard let text = item["address"]?.text, let address = IPAddress(text: text) else {
      return .failure(Refusal(reason: "address: not an IP address"))
    }
    var milliseconds: Int?
    if let time = item["ms"] {
      guard let number = time.number(upTo: longest) else {
        return .failure(Refusal(reason: "ms: not an integer from 0 to \(longest)"))
      }
      milliseconds = Int(number)
    }
    let result: AddressReport.Result
    switch item["result"]?.text {
    case "ok": result = .works(milliseconds: milliseconds)
    case "failed" where milliseconds != nil:
      return .failure(Refusal(reason: "ms: only with \"result\": \"ok\""))
    case "failed": result = .failed
    default: return .failure(Refusal(reason: "result: expected \"ok\" or \"failed\""))
    }
    return .success(AddressReport(name: name.lowercased, address: address, result: result))
  }
}

/// What became of the reports of a request.
package enum ReportOutcome: Hashable, Sendable {
  /// So many counted: a cached answer to the name has the address. Of the others no answer is known.
  case taken(counted: Int, unknown: Int)
  /// `ranking.reports` is false, or there is no cache.
  case off
  /// More than 100 reports within a second.
  case tooMany

  /// The status of an HTTP response.
  package var status: Int {
    switch self {
    case .taken: 200
    case .off: 403
    case .tooMany: 429
    }
  }

  /// One line.
  package var line: String {
    switch self {
    case .taken(let counted, 0): "\(counted) \(counted == 1 ? "report" : "reports") counted"
    case .taken(let counted, let unknown):
      "\(counted) of \(counted + unknown) reports counted; no cached answer to the name has the address of the "
        + "\(unknown == 1 ? "other" : "others")"
    case .off: "reports are off: ranking.reports is false, or there is no cache"
    case .tooMany: "more than 100 reports in a second"
    }
  }

  /// A JSON object.
  package var json: String {
    guard case .taken(let counted, let unknown) = self else { return JSONText.object(["counted": "0"]) }
    return JSONText.object(["counted": "\(counted)", "unknown": "\(unknown)"])
  }
}
