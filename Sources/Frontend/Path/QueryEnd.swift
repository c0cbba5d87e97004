// QueryEnd.swift -- how a query ended on the hot path, for who logs it.

/// What became of the query that a query path has read last.
struct QueryEnd {
  /// `QueryFate` by its place.
  var fate: UInt8
  /// The response's code.
  var code: UInt16

  @_noAllocation @inline(__always)
  init(_ fate: QueryFate, _ code: UInt16) {
    self.fate = UInt8(truncatingIfNeeded: fate.place)
    self.code = code
  }
}
