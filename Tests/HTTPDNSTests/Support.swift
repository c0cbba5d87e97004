// Support.swift -- short ways to write questions, replies and expected records.

import DNSWire
import Foundation
import HTTPDNS
import HTTPMessage

/// The part of a file of vectors that tests read.
func vectors<Part: Decodable>(_ part: Part.Type, in file: String) -> Part {
  let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Data/\(file)")
  return try! JSONDecoder().decode(part, from: Data(contentsOf: file))
}

func question(
  _ name: String, _ type: RecordType = .a, dnssecOK: Bool = false, subnet: String? = nil
) -> HTTPDNSQuestion {
  HTTPDNSQuestion(
    name: DomainName(text: name)!, type: type, dnssecOK: dnssecOK, clientSubnet: subnet.map { IPPrefix(text: $0)! })
}

func json(_ body: String, status: Int = 200, contentType: String? = "application/json") -> HTTPResponse {
  HTTPResponse(status: status, contentType: contentType, body: Array(body.utf8))
}

func a(_ owner: String, _ ttl: UInt32, _ address: String) -> ResourceRecord {
  let address = IPAddress(text: address)!
  return ResourceRecord(
    owner: DomainName(text: owner)!, type: address.isIPv6 ? .aaaa : .a, ttl: ttl, rdata: address.octets)
}

func cname(_ owner: String, _ ttl: UInt32, _ target: String) -> ResourceRecord {
  ResourceRecord(
    owner: DomainName(text: owner)!, type: .cname, ttl: ttl, rdata: DomainName(text: target)!.octets)
}

func txt(_ owner: String, _ ttl: UInt32, _ strings: String...) -> ResourceRecord {
  ResourceRecord(
    owner: DomainName(text: owner)!, type: .txt, ttl: ttl,
    rdata: strings.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
}

/// An SOA record of `example.com` as the vectors have it.
func soa(_ ttl: UInt32, minimum: UInt32) -> ResourceRecord {
  var rdata = DomainName(text: "ns1.example.com")!.octets + DomainName(text: "hostmaster.example.com")!.octets
  for number in [2_024_010_101, 3600, 600, 604_800, minimum] as [UInt32] {
    for shift in [24, 16, 8, 0] { rdata.append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
  }
  return ResourceRecord(owner: DomainName(text: "example.com")!, type: .soa, ttl: ttl, rdata: rdata)
}

let google = JSONDialect(flavour: .google, path: "/resolve")
let cloudflare = JSONDialect(flavour: .cloudflare, path: "/dns-query")
let generic = JSONDialect(flavour: .generic, path: "/dns-query")
let alidns = AliDNSDialect(account: nil, isEncrypted: true)
let shortAliDNS = AliDNSDialect(account: nil, form: .short, isEncrypted: true)
let post = MessageDialect(method: .post)

/// What a body of the JSON form says in `Answer` and `Authority`, wrapped into everything else that it has.
func reply(
  _ name: String, _ type: Int = 1, status: Int = 0, answer: [String] = [], authority: [String] = []
) -> HTTPResponse {
  json(
    """
    {"Status":\(status),"TC":false,"RD":true,"RA":true,"AD":true,"CD":false,
    "Question":[{"name":"\(name)","type":\(type)}],
    "Answer":[\(answer.joined(separator: ","))],"Authority":[\(authority.joined(separator: ","))]}
    """)
}

/// A record of a JSON body.
func record(_ name: String, _ type: Int, _ data: String, ttl: String = "300") -> String {
  #"{"name":"\#(name)","type":\#(type),"TTL":\#(ttl),"data":"\#(data)"}"#
}

/// The failure with which a reply is refused; nil where it is accepted.
func failure(
  of response: HTTPResponse, to question: HTTPDNSQuestion, with dialect: any Dialect = google
) -> HTTPDNSFailure? {
  do {
    _ = try dialect.answer(to: question, from: response)
    return nil
  } catch {
    return error
  }
}
