// QuerySupport.swift -- what the reader makes of a query.

import DNSWire

/// What the reader says of a message, and what it has read.
func read(_ octets: [UInt8]) -> (verdict: QueryVerdict, query: Query) {
  var query = Query()
  let verdict = QueryReader.read(octets.span, into: &query)
  return (verdict, query)
}
