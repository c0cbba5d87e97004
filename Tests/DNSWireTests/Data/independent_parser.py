#!/usr/bin/env python3
"""independent_parser.py -- dnspython's view of DNS messages and RDATA, for the differential tests.

    independent_parser.py messages|texts|rdata QUESTIONS ANSWERS

messages: each preceded by two octets of length; a line of answer each, `ok CONTENTS` or `no REASON`.
texts:    lines `TYPE HEXADECIMAL`; answers are presentation text. rdata: lines `TYPE TEXT`; answers are hexadecimal.
"""

import sys

try:
    import dns.edns
    import dns.message
    import dns.rdata
    import dns.wire
    from dns.name import MAX_COMPRESSION_POINTER_CHAIN  # since 2.9: older ones accept overlapping pointers
except ImportError as error:
    sys.exit(f"{sys.executable}: {error}")

IN, OPT, TSIG = 1, 41, 250


class Structure(dns.rdata.GenericRdata):
    """RDATA of which only the structure is checked: fixed octets, names, character-strings, whatever is left."""

    parts = ()

    @classmethod
    def from_wire_parser(cls, rdclass, rdtype, parser, origin=None):
        output = b""
        for part in cls.parts:
            if part == "name":
                output += parser.get_name().to_wire()
            elif part == "rest":
                output += parser.get_remaining()
            elif part == "string":
                output += cls.string(parser)
            elif part == "strings":
                while parser.remaining():
                    output += cls.string(parser)
            elif part == "parameters":
                output += cls.parameters(parser)
            else:
                output += parser.get_bytes(part)
        return cls(rdclass, rdtype, output)

    @staticmethod
    def string(parser):
        string = parser.get_counted_bytes()
        return bytes([len(string)]) + string

    @staticmethod
    def parameters(parser):
        output = b""
        while parser.remaining():
            key, length = parser.get_struct("!HH")
            output += key.to_bytes(2, "big") + length.to_bytes(2, "big") + parser.get_bytes(length)
        return output


def structure(*parts):
    return type("Structure", (Structure,), {"parts": parts})


# Where we differ by design. Everything that is not listed here must be decided as dnspython decides it.
DIFFERENCES = {
    # RFC 1035 types that dnspython does not know; RFC 3597 section 4 wants their names decompressed.
    3: structure("name"),
    4: structure("name"),
    7: structure("name"),
    8: structure("name"),
    9: structure("name"),
    14: structure("name", "name"),
    30: structure("name", "rest"),
    # dnspython refuses intervals above 2^31-1. RFC 1035 has 32 bits, and it is the resolver's business to clamp them.
    6: structure("name", "name", 20),
    # dnspython compares the length of digests and fingerprints with their algorithm, and refuses digest type 0. A
    # forwarder hands them on: the validator behind it decides.
    43: structure(4, "rest"),
    59: structure(4, "rest"),
    44: structure(2, "rest"),
    52: structure(3, "rest"),
    53: structure(3, "rest"),
    # A record whose lengths are right is passed on as it is: a TXT record without strings, a tag of CAA with other
    # characters, SvcParams in any order.
    16: structure("strings"),
    257: structure(1, "string", "rest"),
    # dnspython checks the type bitmap. Likewise the validator's business.
    47: structure("name", "rest"),
    # dnspython checks the values of SvcParams and refuses any in AliasMode. RFC 9460 section 4.3 allows a resolver to
    # treat them as opaque, and section 2.4.2 has clients ignore them in AliasMode.
    64: structure(2, "name", "parameters"),
    65: structure(2, "name", "parameters"),
}

# The types whose RDATA we look into; all others are opaque (RFC 3597), whatever dnspython knows about them.
KNOWN = {1, 2, 5, 12, 13, 15, 17, 18, 21, 24, 26, 28, 33, 35, 36, 39, 46, 48, 60}

dnspython_rdata_class = dns.rdata.get_rdata_class
dnspython_special_header = dns.message.Message._parse_special_rr_header
# In octets, as it stands in the message.
length_of_last_name = 0


def rdata_class(rdclass, rdtype, use_generic=True):
    if rdtype == OPT:
        return dnspython_rdata_class(rdclass, rdtype, use_generic)
    # Records of other classes are opaque and kept nowhere, and so are signatures of transactions, which we never sign.
    if rdclass != IN or rdtype == TSIG:
        return dns.rdata.GenericRdata
    if rdtype in DIFFERENCES:
        return DIFFERENCES[rdtype]
    return dnspython_rdata_class(rdclass, rdtype, use_generic) if rdtype in KNOWN else dns.rdata.GenericRdata


def accept_like_us():
    dns.rdata.get_rdata_class = rdata_class
    # We expand compressed names in every type that we know; dnspython only where an RFC says so.
    dns.wire.Parser.get_name = expanded_name
    # As many pointers as a name can have labels, instead of 16.
    dns.name.MAX_COMPRESSION_POINTER_CHAIN = 127
    # Options are opaque in a message: the function that reads one validates it (EDNS.clientSubnet).
    dns.edns.get_option_class = lambda otype: dns.edns.GenericOption
    # UPDATE gives other meanings to empty RDATA and to classes; we never ask for one, and read it as any other.
    dns.message._message_factory_from_opcode = lambda opcode: dns.message.QueryMessage
    dns.message.Message._parse_special_rr_header = special_header


def expanded_name(parser, origin=None, decompress=True):
    global length_of_last_name
    begin = parser.current
    name = dns.name.from_wire_parser(parser, True)
    length_of_last_name = parser.current - begin
    return name


def special_header(self, section, count, position, name, rdclass, rdtype):
    # A TSIG record anywhere is one record of class ANY more.
    if rdtype == TSIG:
        return rdclass, rdtype, None, False
    # The owner of an OPT record is the octet 0 itself (RFC 6891 section 6.1.2), not a pointer to one.
    if rdtype == OPT and length_of_last_name != 1:
        raise dns.exception.FormError("the owner of OPT is not the octet 0")
    return dnspython_special_header(self, section, count, position, name, rdclass, rdtype)


def contents(message):
    words = []
    for rrset in message.question:
        words.append(f"Q:{rrset.name.to_wire().hex()}:{int(rrset.rdtype)}:{int(rrset.rdclass)}")
    for number, section in enumerate(message.sections[1:], 1):
        for rrset in section:
            if rrset.rdclass == IN:
                for rdata in rrset:
                    words.append(
                        f"{number}:{rrset.name.to_wire().hex()}:{int(rrset.rdtype)}:{rrset.ttl}:{rdata.to_wire().hex()}"
                    )
    if message.opt:
        options = ",".join(f"{int(option.otype)}={option.to_wire().hex()}" for option in message.opt[0].options)
        # Response code, version and DO; the other flags are to be ignored (RFC 6891 section 6.1.4).
        words.append(f"E:{int(message.opt[0].rdclass)}:{message.opt.ttl & 0xFFFF8000}:{options}")
    return " ".join(words)


def verdict(wire):
    try:
        message = dns.message.from_wire(wire, keyring=False, ignore_trailing=True, one_rr_per_rrset=True)
    except Exception as error:
        return "no " + " ".join(f"{type(error).__name__}: {error}".split())
    return "ok " + contents(message)


def messages(octets):
    position = 0
    while position < len(octets):
        length = int.from_bytes(octets[position : position + 2], "big")
        position += 2 + length
        yield verdict(octets[position - length : position])


def texts(octets):
    for line in octets.decode().splitlines():
        rdtype, _, digits = line.partition(" ")
        wire = bytes.fromhex(digits)
        try:
            yield dns.rdata.from_wire(IN, int(rdtype), wire, 0, len(wire)).to_text()
        except dns.exception.DNSException:
            yield ""


def rdata(octets):
    # Not splitlines(): it would also split at other characters than the line feed.
    for line in octets.decode().split("\n")[:-1]:
        rdtype, _, text = line.partition(" ")
        try:
            yield dns.rdata.from_text(IN, int(rdtype), text).to_wire().hex()
        except (dns.exception.DNSException, ValueError):
            yield ""


def main():
    task, questions, answers = sys.argv[1:]
    with open(questions, "rb") as file:
        octets = file.read()
    if task == "messages":
        accept_like_us()
    with open(answers, "w", encoding="utf-8") as file:
        for line in {"messages": messages, "texts": texts, "rdata": rdata}[task](octets):
            file.write(line + "\n")


main()
