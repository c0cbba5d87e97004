// AddressListTests.swift -- lists of addresses: what counts of them, and what an empty one means.

import DNSWire
import HTTPMessage
import JSON
import Testing

@testable import HTTPDNS

@Suite struct AddressListTests {
  /// One list of a reply.
  private struct List {
    var name: String? = "www.example.com"
    var ips = #"["192.0.2.1"]"#
    var ttl = "60"
    var family: RecordType?
  }

  private func read(
    _ lists: [List], _ batch: QuestionBatch, standardTTL: UInt32? = nil
  ) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    let texts = lists.map { list in
      #"{"ips":\#(list.ips),"ttl":\#(list.ttl)\#(list.name.map { #","name":"\#($0)""# } ?? "")}"#
    }
    let body = #"{"lists":[\#(texts.joined(separator: ","))]}"#
    do throws(HTTPDNSFailure) {
      return try withJSON(Array(body.utf8)) { root throws(HTTPDNSFailure) in
        var found = AddressLists(batch, member: "ips")
        for (element, list) in zip(root["lists"]!.elements, lists) {
          found.add(
            element["ips"], of: element["name"], family: list.family, ttl: element["ttl"],
            standardTTL: standardTTL)
        }
        return try found.results()
      }
    } catch { return batch.questions.map { _ in .failure(error) } }
  }

  private let www = "www.example.com"
  private var both: QuestionBatch { batch([www], [.a, .aaaa]) }

  @Test func `families are divided, white space and texts that are no addresses do not count`() {
    let list = List(ips: #"[" 192.0.2.1 ","2001:db8::1","x",7,null,"192.0.2.2\t","192.0.2.300"," ",""]"#)
    #expect(
      read([list], both) == [
        positive(a(www, 60, "192.0.2.1"), a(www, 60, "192.0.2.2")), positive(a(www, 60, "2001:db8::1")),
      ])
    #expect(read([list], batch([www], [.aaaa])) == [positive(a(www, 60, "2001:db8::1"))])
  }

  @Test(arguments: [#"["x"]"#, #"[""]"#, "[1]", #"["192.0.2.1.","1.2.3"]"#, "[[]]"])
  func `a list of nothing but other texts is unreadable and not empty`(ips: String) {
    #expect(read([List(ips: ips)], both) == [.failure(.unreadable(.rdata)), .failure(.unreadable(.rdata))])
    #expect(
      read([List(ips: ips, family: .aaaa), List(family: .a)], both) == [
        positive(a(www, 60, "192.0.2.1")), .failure(.unreadable(.rdata)),
      ])
  }

  @Test func `an empty list, a missing list, family or name is empty, and may mean anything`() {
    for ips in ["[]", "null"] { #expect(read([List(ips: ips)], both) == [noData(), noData()]) }
    #expect(read([List()], both) == [positive(a(www, 60, "192.0.2.1")), noData()])
    #expect(read([], both) == [noData(), noData()])
    let two = batch([www, "b.example"])
    #expect(read([List()], two) == [positive(a(www, 60, "192.0.2.1")), noData()])
    #expect(read([List(ips: #""192.0.2.1""#)], batch([www])) == [.failure(.unreadable(.shape("ips")))])
    #expect(read([List(name: nil, ips: "null")], both) == [shapeless, shapeless])
  }

  private let shapeless = Result<HTTPDNSAnswer, HTTPDNSFailure>.failure(.unreadable(.shape("ips")))

  @Test func `a senseless list of a name does not spoil another one of the same name`() {
    for junk in [List(ips: #"["x"]"#), List(ips: "7"), List(ttl: "null")] {
      for lists in [[junk, List()], [List(), junk]] {
        #expect(read(lists, batch([www])) == [positive(a(www, 60, "192.0.2.1"))])
      }
    }
  }

  @Test func `names are compared without regard to case and final dot, and other names alone are another question`() {
    for name in [www, "WWW.Example.com.", nil] {
      #expect(read([List(name: name)], batch([www])) == [positive(a(www, 60, "192.0.2.1"))])
    }
    #expect(read([List(name: "b.example")], batch([www])) == [.failure(.wrongQuestion)])
    #expect(
      read([List(name: nil)], batch([www, "b.example"])) == [.failure(.wrongQuestion), .failure(.wrongQuestion)])
    #expect(read([List(name: "b.example", ips: "[1]"), List()], batch([www])) == [positive(a(www, 60, "192.0.2.1"))])
  }

  @Test func `a TTL is a number or a text, and addresses without one are unreadable unless there is a standard`() {
    for (ttl, expected) in [("7", 7), (#""7""#, 7), ("7.9", 7), ("-1", 0), ("99999999999", UInt32(Int32.max))] {
      #expect(read([List(ttl: ttl)], batch([www])) == [positive(a(www, expected, "192.0.2.1"))])
    }
    for ttl in ["null", #""""#] {
      #expect(read([List(ttl: ttl)], batch([www])) == [.failure(.unreadable(.shape("ttl")))])
      #expect(read([List(ttl: ttl)], batch([www]), standardTTL: 60) == [positive(a(www, 60, "192.0.2.1"))])
      #expect(read([List(ips: "[]", ttl: ttl)], batch([www])) == [noData()])
    }
    #expect(read([List(ttl: #""x""#)], batch([www]), standardTTL: 60) == [.failure(.unreadable(.number))])
  }
}
