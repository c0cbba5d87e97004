// MessageParser.swift -- octets → Message, for responses of untrusted servers.

extension Message {
  /// Parses a message at the beginning of the octets.
  ///
  /// Every count, length and label up to the end of the answer section is checked, of a message without answers up to
  /// the end of the authority section, and compression pointers must point backwards. A record whose RDATA cannot have
  /// the form of its type is left out and counted; names in RDATA are uncompressed in the result. Errors in parts that
  /// the daemon does not need are tolerated: behind answers, an authority section with a malformed name counts as one
  /// record that was left out, an additional section ends where it cannot be read, the first usable OPT record counts,
  /// and octets after the message are ignored. A TTL with the highest bit set becomes 0 (RFC 2181 section 8).
  ///
  /// - Complexity: O(octets), with at most `WireReader.maximumSteps` labels and pointers.
  public static func parse(_ octets: [UInt8]) throws(WireError) -> Message { try parse(octets.span) }

  /// Parses a message as above, without copying the octets.
  public static func parse(_ octets: Span<UInt8>) throws(WireError) -> Message {
    var reader = WireReader(octets)
    var (message, counts) = try begin(&reader)
    message.answers = try message.records(counts.answers, of: .answer, &reader)
    do {
      message.authorities = try message.records(counts.authorities, of: .authority, &reader)
    } catch {
      // One that is cut off may have more to say by TCP.
      guard error != .tooMuchWork, error != .truncated, !message.answers.isEmpty else { throw error }
      // It might have denied data, or referred to another server.
      message.unreadableRecordCount += 1
      return message
    }
    do {
      message.additionals = try message.records(counts.additionals, of: .additional, &reader)
    } catch {
      guard error != .tooMuchWork else { throw error }
    }
    return message
  }

  /// The records of the answer section that arrived in whole, of a message that is cut off; nil if there are none.
  public static func wholeRecords(of octets: [UInt8]) -> Message? {
    var reader = WireReader(octets.span)
    guard let (beginning, counts) = try? begin(&reader) else { return nil }
    var message = beginning
    var records: [ResourceRecord] = []
    try? message.add(counts.answers, of: .answer, to: &records, &reader)
    message.answers = records
    return records.isEmpty ? nil : message
  }

  /// How many records each section is said to have.
  private typealias Counts = (answers: UInt16, authorities: UInt16, additionals: UInt16)

  /// Reads what comes before the records.
  private static func begin(_ reader: inout WireReader) throws(WireError) -> (Message, Counts) {
    guard reader.remaining >= Header.octetCount else { throw .shortHeader }
    var message = Message(id: try reader.short(), header: Header(bits: try reader.short()))
    let questionCount = try reader.short()
    let counts = (try reader.short(), try reader.short(), try reader.short())
    for _ in 0..<questionCount {
      let question = Question(name: try reader.name(), type: RecordType(try reader.short()))
      message.questions.append(Entry(question, qclass: RecordClass(rawValue: try reader.short())))
    }
    return (message, counts)
  }

  private enum Section { case answer, authority, additional }

  private mutating func records(
    _ count: UInt16, of section: Section, _ reader: inout WireReader
  ) throws(WireError) -> [ResourceRecord] {
    var records: [ResourceRecord] = []
    try add(count, of: section, to: &records, &reader)
    return records
  }

  private mutating func add(
    _ count: UInt16, of section: Section, to records: inout [ResourceRecord], _ reader: inout WireReader
  ) throws(WireError) {
    var last: (pointer: UInt16, name: DomainName)?
    for _ in 0..<count {
      let begin = reader.position
      let owner = try ownerName(&reader, &last)
      let ownerLength = reader.position - begin
      let type = RecordType(try reader.short())
      let recordClass = RecordClass(rawValue: try reader.short())
      let ttl = try reader.long()
      let length = Int(try reader.short())
      if type == .opt {
        let options = try reader.options(length: length)
        // The owner must be the root itself, not a pointer to a zero octet (RFC 6891 section 6.1.2).
        guard section == .additional else {
          unreadableRecordCount += 1
          continue
        }
        guard edns == nil, owner.isRoot, ownerLength == 1 else { continue }
        edns = EDNS(size: recordClass.rawValue, ttl: ttl, options: options)
      } else if recordClass == .internet {
        guard let rdata = try reader.rdata(type, length: length) else {
          if section != .additional { unreadableRecordCount += 1 }
          continue
        }
        records.append(ResourceRecord(owner: owner, type: type, ttl: ttl > Int32.max ? 0 : ttl, rdata: rdata))
      } else {
        // Opaque, because another class may define another form for the type (RFC 3597 section 3).
        _ = try reader.skip(length)
        foreignRecordCount += 1
      }
    }
  }

  /// An owner name. Reuses QNAME or the previous owner, which most records point to.
  private func ownerName(
    _ reader: inout WireReader, _ last: inout (pointer: UInt16, name: DomainName)?
  ) throws(WireError) -> DomainName {
    guard let pointer = reader.upcomingShort, pointer >= 0xC000 else { return try reader.name() }
    if pointer == 0xC000 | UInt16(Header.octetCount), let first = questions.first {
      _ = try reader.skip(2)
      return first.question.name
    }
    if let last, last.pointer == pointer {
      _ = try reader.skip(2)
      return last.name
    }
    let name = try reader.name()
    last = (pointer, name)
    return name
  }
}

extension EDNS {
  /// The contents of an OPT record, whose fixed fields have their own meanings (RFC 6891 section 6.1.2).
  fileprivate init(size: UInt16, ttl: UInt32, options: [Option]) {
    self.init(udpPayloadSize: size, dnssecOK: ttl & 0x8000 != 0, options: options)
    extendedResponseCode = UInt8(truncatingIfNeeded: ttl >> 24)
    version = UInt8(truncatingIfNeeded: ttl >> 16)
  }
}

extension WireReader {
  /// Steps over the RDATA of an OPT record.
  ///
  /// - Returns: the options before the first one that is longer than the record.
  @_lifetime(self: copy self)
  fileprivate mutating func options(length: Int) throws(WireError) -> [EDNS.Option] {
    try beginPart(length)
    defer { leavePart() }
    var options: [EDNS.Option] = []
    while remaining >= 4 {
      let code = EDNS.OptionCode(rawValue: try short())
      let size = Int(try short())
      guard size <= remaining else { break }
      options.append(EDNS.Option(code: code, data: try array(size)))
    }
    return options
  }
}
