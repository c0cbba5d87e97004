// AddressTable.swift -- reads the table of a self-hosted HTTPDNS service: one JSON text of names and addresses.

import DNSWire
import HTTPMessage
import JSON

/// An immutable table as its server published it. The next download replaces it as a whole.
///
/// The form `{"service":"…","enable":1,"domainlist":[{"domain":"a.example.com","ips":["192.0.2.1"]}]}` is common among
/// apps with a server of their own. It has no TTL, no wildcards and no status. Unknown members are ignored, and so is
/// `service`, a human-readable label.
public struct AddressTable: Sendable {
  /// Maximum octets of a table.
  public static let mostOctets = 4 << 20
  /// Maximum addresses of one name. A client tries a few of them, and all have to fit into a response.
  static let mostAddresses = 64

  /// Whether the table is in use. A server can switch its table off; the table is then empty.
  public let isEnabled: Bool
  /// The addresses of each name in order of preference, both families mixed.
  private let addresses: TableIndex

  /// The number of names.
  public var count: Int { addresses.count }

  /// Reads the table in a reply, which must have status 200.
  ///
  /// - Throws: the reason if the table is unusable. A mistake in one entry refuses the whole table, because half a
  ///   table is not what its owner published.
  /// - Complexity: O(*n*) in the octets of the body.
  public init(_ response: HTTPResponse) throws(AddressTableFault) {
    do throws(HTTPDNSFailure) {
      try response.requireStatus(in: 200...200)
      try response.requireBody(.undocumentedJSON, limit: AddressTable.mostOctets)
    } catch {
      throw AddressTableFault(error)
    }
    try self.init(text: response.body)
  }

  /// Reads the table in a JSON text, for example that of a file.
  ///
  /// - Throws: the reason if the table is unusable.
  /// - Complexity: O(*n*) in the octets.
  public init(text: [UInt8]) throws(AddressTableFault) {
    self = try withJSON(text, limit: AddressTable.mostOctets) { refusal in
      AddressTableFault(HTTPDNSFailure(refusal), place: refusal == .syntax ? jsonFault(in: text) : nil)
    } _: { root throws(AddressTableFault) in
      try AddressTable(root: root)
    }
  }

  private init(root: JSONValue) throws(AddressTableFault) {
    guard let switched = root["enable"], let number = switched.number(upTo: 1) else {
      throw AddressTableFault(.unreadable(.shape("enable")))
    }
    isEnabled = number == 1
    guard isEnabled else {
      addresses = TableIndex()
      return
    }
    guard let list = root["domainlist"], list.isArray else {
      throw AddressTableFault(.unreadable(.shape("domainlist")))
    }
    var table = TableIndex()
    for (index, element) in list.elements.enumerated() {
      let (name, addresses) = try AddressTable.entry(element, at: index)
      // The first entry of a name counts.
      table.insert(name, addresses)
    }
    addresses = table
  }

  private static func entry(
    _ element: JSONValue, at index: Int
  ) throws(AddressTableFault) -> (DomainName, [IPAddress]) {
    func fault(_ reason: UnreadableReason, _ value: String? = nil) -> AddressTableFault {
      AddressTableFault(.unreadable(reason), entry: index, value: value)
    }
    guard let domain = element["domain"]?.text else { throw fault(.shape("domain")) }
    guard let list = element["ips"], list.isArray else { throw fault(.shape("ips")) }
    guard let name = DomainName(text: domain), name.isPlain, !name.isRoot else { throw fault(.name, domain) }
    guard list.count <= mostAddresses else { throw fault(.tooLarge) }
    var addresses: [IPAddress] = []
    for item in list.elements {
      guard let text = item.text else { throw fault(.shape("ips[]")) }
      guard let address = IPAddress(text: text) else { throw fault(.rdata, text) }
      if !addresses.contains(address) { addresses.append(address) }
    }
    return (name, addresses)
  }

  /// Returns the answer for a listed name; nil for any other name, and for types other than A and AAAA. A listed name
  /// without an address of the family is certain NODATA.
  ///
  /// - Parameter ttl: the TTL of the records in seconds, because the table has none.
  /// - Complexity: O(1) in the names.
  public func answer(to question: HTTPDNSQuestion, ttl: UInt32) -> HTTPDNSAnswer? {
    guard question.type == .a || question.type == .aaaa, let listed = addresses[question.name] else { return nil }
    let records = listed.filter { $0.isIPv6 == (question.type == .aaaa) }.map {
      ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: $0.octets)
    }
    return HTTPDNSAnswer(responseCode: .noError, answers: records, isNegative: records.isEmpty)
  }
}

/// The reason to refuse a table. Of the table's text it contains at most one short value without odd characters, so it
/// is safe to log.
public struct AddressTableFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public let failure: HTTPDNSFailure
  /// The index in `domainlist`, from 0; nil if the mistake is not in an entry.
  public let entry: Int?
  /// Where the text stops being JSON; nil if that is not what is wrong, or if the place is not known.
  public let place: TextPlace?
  /// The value that is not a name or not an address; nil if something else is wrong, or if it cannot be shown.
  let value: String?

  /// The longest value that is shown, in octets.
  private static let longestValue = 60

  init(_ failure: HTTPDNSFailure, entry: Int? = nil, place: TextPlace? = nil, value: String? = nil) {
    self.failure = failure
    self.entry = entry
    self.place = place
    let isShown = value.map { value in
      value.utf8.count <= AddressTableFault.longestValue && value.utf8.allSatisfy { 0x20...0x7E ~= $0 }
    }
    self.value = isShown == true ? value : nil
  }

  /// One short line for logs; positions in it count from 1, as in messages about the configuration.
  public var description: String {
    if let entry {
      let (place, value) = ("domainlist[#\(entry + 1)]", value.map { "\"\($0)\"" } ?? "a text")
      return switch failure {
      case .unreadable(.name): "unreadable: \(value) is not a domain name, at \(place).domain"
      case .unreadable(.rdata): "unreadable: \(value) is not an address, at \(place).ips"
      default: "\(failure), at \(place)"
      }
    }
    if let place { return "unreadable: invalid JSON\(place)" }
    return failure == .unreadable(.syntax) ? "unreadable: JSON with a member twice or invalid characters" : "\(failure)"
  }
}
