// QuerySupport.swift -- runs the query reader for the tests.

import DNSWire

/// The reader's verdict for a message, and the fields that it read.
func read(_ octets: [UInt8]) -> (verdict: QueryVerdict, query: Query) {
  var query = Query()
  let verdict = QueryReader.read(octets.span, into: &query)
  return (verdict, query)
}
