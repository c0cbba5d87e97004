// AddressTable.swift -- the table of a self-built HTTPDNS: names and their addresses in one JSON text.

import DNSWire

/// A table as its server published it, for look-ups until the next one.
///
/// `{"service":"…","enable":1,"domainlist":[{"domain":"a.example.com","ips":["192.0.2.1"]}]}` is the form that apps with
/// a server of their own use. It has no TTL, no wildcards and no status; members that it does not define are ignored,
/// and so is `service`, a label for people.
public struct AddressTable: Sendable {
  /// Octets of a table.
  public static let mostOctets = 4 << 20
  /// Addresses of one name. A client tries a few of them, and a response has to hold them all.
  static let mostAddresses = 64

  /// Whether the table is in use; its server may switch it off, and nothing in it counts then.
  public let isEnabled: Bool
  /// The addresses of each name in order of preference, both families mixed.
  private let addresses: [DomainName: [IPAddress]]

  /// How many names are listed.
  public var count: Int { addresses.count }

  /// The table that a reply holds, which must have status 200.
  ///
  /// - Throws: why there is none. A mistake in one entry refuses the table: half of it is not what its owner published.
  /// - Complexity: O(*n*) in the octets of the body.
  public init(_ response: TransferResponse) throws(AddressTableFault) {
    do throws(HTTPDNSFailure) {
      try response.requireStatus(in: 200...200)
      try response.requireBody(.undocumentedJSON, limit: AddressTable.mostOctets)
    } catch {
      throw AddressTableFault(error)
    }
    try self.init(text: response.body)
  }

  /// The table in a JSON text, for example a file's.
  ///
  /// - Throws: why there is none.
  /// - Complexity: O(*n*) in the octets.
  public init(text: [UInt8]) throws(AddressTableFault) {
    let result: Result<AddressTable, AddressTableFault>
    do throws(HTTPDNSFailure) {
      result = try withJSON(text, limit: AddressTable.mostOctets) { root in
        Result { () throws(AddressTableFault) in try AddressTable(root: root) }
      }
    } catch {
      throw AddressTableFault(error)
    }
    self = try result.get()
  }

  private init(root: JSONValue) throws(AddressTableFault) {
    guard let switched = root["enable"], let number = switched.number(upTo: 1) else {
      throw AddressTableFault(.unreadable(.shape))
    }
    isEnabled = number == 1
    guard isEnabled else {
      addresses = [:]
      return
    }
    guard let list = root["domainlist"], list.isArray else { throw AddressTableFault(.unreadable(.shape)) }
    var table: [DomainName: [IPAddress]] = [:]
    for (index, element) in list.elements.enumerated() {
      do throws(HTTPDNSFailure) {
        let (name, addresses) = try AddressTable.entry(element)
        // A name that is listed again keeps what it has.
        if table[name] == nil { table[name] = addresses }
      } catch {
        throw AddressTableFault(error, entry: index)
      }
    }
    addresses = table
  }

  private static func entry(_ element: JSONValue) throws(HTTPDNSFailure) -> (DomainName, [IPAddress]) {
    guard let domain = element["domain"]?.text, let list = element["ips"], list.isArray else {
      throw .unreadable(.shape)
    }
    guard let name = DomainName(text: domain), name.isPlain, !name.isRoot else { throw .unreadable(.name) }
    guard list.count <= mostAddresses else { throw .unreadable(.tooLarge) }
    var addresses: [IPAddress] = []
    for item in list.elements {
      guard let text = item.text else { throw .unreadable(.shape) }
      guard let address = IPAddress(text: text) else { throw .unreadable(.rdata) }
      if !addresses.contains(address) { addresses.append(address) }
    }
    return (name, addresses)
  }

  /// What the table says: nil for a name that is not listed, and for types other than A and AAAA, of which it says
  /// nothing. A name without an address of the family has no such data, and that is certain.
  ///
  /// - Parameter ttl: seconds that an answer holds; the table has none.
  /// - Complexity: O(1) in the names.
  public func answer(to question: HTTPDNSQuestion, ttl: UInt32) -> HTTPDNSAnswer? {
    guard question.type == .a || question.type == .aaaa, let listed = addresses[question.name] else { return nil }
    let records = listed.filter { $0.isIPv6 == (question.type == .aaaa) }.map {
      ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: $0.octets)
    }
    return HTTPDNSAnswer(responseCode: .noError, answers: records, isNegative: records.isEmpty)
  }
}

/// Why a table is refused. It carries no text of the table's, so it may be logged.
public struct AddressTableFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  public let failure: HTTPDNSFailure
  /// The place in `domainlist`, counted from 0; nil where the table as a whole is wrong.
  public let entry: Int?

  init(_ failure: HTTPDNSFailure, entry: Int? = nil) {
    self.failure = failure
    self.entry = entry
  }

  /// One short line for logs.
  public var description: String { entry.map { "\(failure), at domainlist[\($0)]" } ?? failure.description }
}
