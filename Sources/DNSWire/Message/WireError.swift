// WireError.swift -- the reasons why octets are no DNS message, or a value does not fit into one.

/// An error in a message.
public enum WireError: Error, Hashable, Sendable {
  /// Shorter than a header.
  case shortHeader
  /// A count, a length or a name exceeds the message.
  case truncated
  /// A label of type 01 or 10, which are obsolete (RFC 6891 section 5).
  case labelType
  /// A compression pointer that does not point backwards, or too many pointers in a name.
  case pointer
  /// A name of more than 255 octets.
  case nameTooLong
  /// The names have too many labels and pointers: reading all of them would block the thread.
  case tooMuchWork
  /// A value exceeds a message or one of its length fields.
  case tooLong
}
