// PageRequestTests.swift -- bodies of requests: what they may say, and that nothing is guessed.

import Control
import DNSWire
import Testing

@testable import Dashboard
@testable import Fleet

@Suite struct `The body of a request to the dashboard` {
  private func words(_ body: String) throws(DashboardRefusal) -> String {
    try PageRequest.action(Array(body.utf8)).words
  }

  @Test(arguments: [
    (#"{"do":"flush","name":"WWW.example.com"}"#, "flush www.example.com."),
    (#"{"do":"flush","name":"example.com","below":true}"#, "flush --below example.com."),
    (#"{"do":"flush","name":"example.com","below":false}"#, "flush example.com."),
    (#"{"do":"flush","all":true}"#, "flush"),
    (#"{"do":"refresh","name":"example.com"}"#, "refresh example.com."),
    (#"{"do":"report-bad","name":"example.com","address":"2001:db8::1"}"#, "report-bad example.com. 2001:db8::1"),
  ])
  func `an action is what its command does`(body: String, expected: String) throws {
    #expect(try words(body) == expected)
  }

  @Test(arguments: [
    #"{"do":"flush","name":".","below":true}"#, "", "{", "[]", "{}", "null", #"{"do":"flush"}"#,
    #"{"do":"flush","all":false}"#, #"{"do":"flush","all":1}"#,
    #"{"do":"flush","all":true,"name":"example.com"}"#, #"{"do":"flush","all":true,"below":true}"#,
    #"{"do":"flush","name":null}"#, #"{"do":"flush","name":""}"#, #"{"do":"flush","name":["a"]}"#,
    #"{"do":"flush","name":"a..b"}"#, #"{"do":"flush","name":"example.com","below":"true"}"#,
    #"{"do":"flush","name":"example.com","local":true}"#, #"{"do":"Flush","all":true}"#, #"{"do":"reload"}"#,
    #"{"do":"refresh"}"#, #"{"do":"refresh","name":"example.com","types":["A"]}"#,
    #"{"do":"report-bad","name":"example.com"}"#, #"{"do":"report-bad","name":"example.com","address":"x"}"#,
    #"{"do":"report-bad","address":"192.0.2.1"}"#, #"{"do":"flush","do":"flush","all":true}"#,
  ])
  func `anything else is a mistake, and nothing is done`(body: String) {
    #expect { try words(body) } throws: { ($0 as? DashboardRefusal)?.status == 400 }
  }

  @Test func `a code is the only member`() throws {
    #expect(try PageRequest.code(Array(#"{"code":"abc"}"#.utf8)) == "abc")
    for body in ["", "{}", #"{"code":1}"#, #"{"code":"abc","more":1}"#, #"["abc"]"#] {
      #expect(throws: DashboardRefusal.self) { try PageRequest.code(Array(body.utf8)) }
    }
  }
}
