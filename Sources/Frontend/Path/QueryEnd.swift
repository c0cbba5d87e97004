// QueryEnd.swift -- how a query ended on the hot path, for the query log.

/// The end of the query that a query path read last.
struct QueryEnd {
  /// The `place` of its `QueryFate`.
  var fate: UInt8
  /// The response code.
  var code: UInt16
  /// The counter of the rule that has decided, as in `RouteFinding`.
  var rule: UInt16

  @_noAllocation @inline(__always)
  init(_ fate: QueryFate, _ code: UInt16, rule: UInt16) {
    self.fate = UInt8(truncatingIfNeeded: fate.place)
    self.code = code
    self.rule = rule
  }
}
