// MessageComposer.swift -- Message → octets, with compressed owner names.

extension Message {
  /// The largest message in octets, bounded by the length field of DNS over TCP.
  public static let maximumOctetCount = 65_535

  /// The block length to which queries over encrypted transports are padded (RFC 8467 section 4.1).
  public static let queryPaddingBlock = 128

  /// The message as octets. Owner names are compressed, RDATA is not, and the OPT record comes last.
  ///
  /// - Parameter block: pads a message with an OPT record to a multiple of this number of octets (RFC 8467); 0 for none.
  /// - Throws: `.tooLong` if a section has more than 65,535 records, or a record, an option or the message more octets.
  /// - Complexity: O(octets).
  public func compose(paddedTo block: Int = 0) throws(WireError) -> [UInt8] {
    // Only a message with records, or with several questions, has a name that could point to another one.
    let isCompressed = questions.count + answers.count + authorities.count + additionals.count > 1
    var writer = WireWriter(isCompressed: isCompressed)
    writer.short(id)
    writer.short(header.bits)
    try writer.count(questions.count)
    try writer.count(answers.count)
    try writer.count(authorities.count)
    try writer.count(additionals.count + (edns == nil ? 0 : 1))
    for entry in questions {
      writer.name(entry.question.name)
      writer.short(entry.question.type.rawValue)
      writer.short(entry.qclass.rawValue)
    }
    for record in answers { try writer.record(record) }
    for record in authorities { try writer.record(record) }
    for record in additionals { try writer.record(record) }
    if let edns { try writer.opt(edns, paddedTo: block) }
    guard writer.octets.count <= Message.maximumOctetCount else { throw .tooLong }
    return writer.octets
  }
}

/// Appends the parts of a message.
private struct WireWriter {
  private(set) var octets: [UInt8] = []
  /// The offsets of names and their parents within reach of a pointer, by exact octets: a pointer to a name in another
  /// case would change the name.
  private var offsets: [ArraySlice<UInt8>: UInt16] = [:]
  private let isCompressed: Bool

  init(isCompressed: Bool) {
    self.isCompressed = isCompressed
    octets.reserveCapacity(512)
  }

  mutating func short(_ value: UInt16) {
    octets.append(UInt8(truncatingIfNeeded: value >> 8))
    octets.append(UInt8(truncatingIfNeeded: value))
  }

  mutating func long(_ value: UInt32) {
    short(UInt16(truncatingIfNeeded: value >> 16))
    short(UInt16(truncatingIfNeeded: value))
  }

  /// Appends a count or a length of 16 bits.
  mutating func count(_ count: Int) throws(WireError) {
    guard let value = UInt16(exactly: count) else { throw .tooLong }
    short(value)
  }

  mutating func name(_ name: DomainName) {
    guard isCompressed else { return octets.append(contentsOf: name.octets) }
    var suffix = name.octets[...]
    while let length = suffix.first, length != 0 {
      if let offset = offsets[suffix] {
        short(0xC000 | offset)
        return
      }
      if octets.count < 0x4000 { offsets[suffix] = UInt16(octets.count) }
      octets.append(contentsOf: suffix.prefix(Int(length) + 1))
      suffix = suffix.dropFirst(Int(length) + 1)
    }
    octets.append(0)
  }

  mutating func record(_ record: ResourceRecord) throws(WireError) {
    name(record.owner)
    short(record.type.rawValue)
    short(RecordClass.internet.rawValue)
    long(record.ttl)
    try count(record.rdata.count)
    octets.append(contentsOf: record.rdata)
  }

  mutating func opt(_ edns: EDNS, paddedTo block: Int) throws(WireError) {
    octets.append(0)
    short(RecordType.opt.rawValue)
    short(edns.udpPayloadSize)
    octets.append(edns.extendedResponseCode)
    octets.append(edns.version)
    short(edns.dnssecOK ? 0x8000 : 0)
    let lengthOffset = octets.count
    short(0)
    for option in edns.options { try self.option(option.code, option.data) }
    if block > 0 {
      let padding = (block - (octets.count + 4) % block) % block
      short(EDNS.OptionCode.padding.rawValue)
      try count(padding)
      octets.append(contentsOf: repeatElement(0, count: padding))
    }
    guard let length = UInt16(exactly: octets.count - lengthOffset - 2) else { throw .tooLong }
    octets[lengthOffset] = UInt8(truncatingIfNeeded: length >> 8)
    octets[lengthOffset + 1] = UInt8(truncatingIfNeeded: length)
  }

  private mutating func option(_ code: EDNS.OptionCode, _ data: [UInt8]) throws(WireError) {
    short(code.rawValue)
    try count(data.count)
    octets.append(contentsOf: data)
  }
}
