// HTTPRequestTests.swift -- what a description of a request shows.

import HTTPMessage
import Testing

@Suite struct HTTPRequestTests {
  @Test func `no description of a request shows its query, fields or body`() {
    let request = HTTPRequest(
      method: .post, target: "/d?sign=canary", fields: [HTTPField("Authorization", "canary")],
      body: Array("canary".utf8))
    var dumped = ""
    dump([request], to: &dumped)
    for shown in ["\(request)", String(reflecting: request), "\([request])", dumped] {
      #expect(shown.contains("POST /d") && !shown.contains("canary") && !shown.contains("99"))
    }
  }
}
