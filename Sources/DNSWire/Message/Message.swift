// Message.swift -- a whole message as a value, for queries to upstream servers and their responses.

/// A DNS message (RFC 1035 section 4.1) with records of class IN.
public struct Message: Equatable, Sendable {
  /// The message ID: a response has that of its query.
  public var id: UInt16
  /// Flags, OPCODE and the lower RCODE bits.
  public var header: Header
  /// The question section; one entry in every message of OPCODE QUERY (RFC 9619).
  public var questions: [Entry]
  /// The answer section.
  public var answers: [ResourceRecord]
  /// The authority section.
  public var authorities: [ResourceRecord]
  /// The additional section without the OPT record.
  public var additionals: [ResourceRecord]
  /// The contents of the OPT record; nil without an OPT record.
  public var edns: EDNS?
  /// The number of records of classes other than IN. They are checked for their form and dropped: all queries are of
  /// class IN.
  public var foreignRecordCount = 0
  /// The number of records of the answer and authority sections that were left out, because their RDATA could not have the
  /// form of their type, or their type has no place there.
  public var unreadableRecordCount = 0

  /// An entry of the question section.
  public struct Entry: Hashable, Sendable {
    /// QNAME and QTYPE.
    public var question: Question
    public var qclass: RecordClass
    public init(_ question: Question, qclass: RecordClass = .internet) {
      self.question = question
      self.qclass = qclass
    }
  }

  public init(
    id: UInt16, header: Header, questions: [Entry] = [], answers: [ResourceRecord] = [],
    authorities: [ResourceRecord] = [], additionals: [ResourceRecord] = [], edns: EDNS? = nil
  ) {
    self.id = id
    self.header = header
    self.questions = questions
    self.answers = answers
    self.authorities = authorities
    self.additionals = additionals
    self.edns = edns
  }

  /// A query with RD set.
  ///
  /// - Parameter id: random over UDP (RFC 5452), 0 over HTTP (RFC 8484 section 4.1).
  public static func query(_ question: Question, id: UInt16, edns: EDNS? = nil) -> Message {
    var header = Header()
    header.rd = true
    return Message(id: id, header: header, questions: [Entry(question)], edns: edns)
  }

  /// The whole response code: the header's four bits and the OPT record's eight.
  public var responseCode: ResponseCode {
    ResponseCode(rawValue: UInt16(header.rcode) | UInt16(edns?.extendedResponseCode ?? 0) << 4)
  }

  /// Whether this message has exactly that question, in class IN (RFC 5452 section 4.2).
  public func asks(_ question: Question) -> Bool {
    questions.count == 1 && questions[0].question == question && questions[0].qclass == .internet
  }
}
