// WireError.swift -- why octets are no DNS message, or a value does not fit into one.

/// What is wrong with a message.
public enum WireError: Error, Hashable, Sendable {
  /// Fewer octets than a header has: there is not even an ID to answer to.
  case shortHeader
  /// A count, a length or a name reaches behind the end.
  case truncated
  /// A label of type 01 or 10 (RFC 6891 section 5 has retired them).
  case labelType
  /// A compression pointer that does not point backwards, or one too many.
  case pointer
  /// A name of more than 255 octets.
  case nameTooLong
  /// RDATA that does not have the form of its type.
  case rdata(RecordType)
  /// An OPT record that is a second one, outside the additional section, not at the root, or broken (RFC 6891).
  case opt
  /// Names of so many labels and pointers that to read them would hold up everybody else.
  case tooMuchWork
  /// More than a message or one of its length fields can hold.
  case tooLong
}
